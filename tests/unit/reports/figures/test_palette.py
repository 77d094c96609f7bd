"""Colour-blind readers can distinguish the colours, also in grey print, and text on them can be read."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from matplotlib.colors import to_rgb

from reports.figures.bottleneck_map import COLOURS
from reports.figures.palette import INK, PAGE, PALE, RATE, SHARE, SYSTEMS, is_dark, luminance, tint

SIGHTS = {
    "all colours": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""On linear RGB, severity 1: Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009."""
MIN_DISTANCE = 11.0
"""CIELAB distance at which two large areas are clearly different; 2.3 is just noticeable."""


def linear(colour) -> np.ndarray:
    values = np.array(to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def to_lab(sight: str, colour) -> np.ndarray:
    """Return a colour in CIELAB (D65), as a reader with that sight sees it."""
    rgb = np.clip(SIGHTS[sight] @ linear(colour), 0, 1)
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    ratio = to_xyz @ rgb / np.array([0.95047, 1.0, 1.08883])
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def min_distance(sight: str, colours) -> float:
    labs = [to_lab(sight, colour) for colour in colours]
    return min(float(np.linalg.norm(a - b)) for n, a in enumerate(labs) for b in labs[:n])


def contrast(one, other) -> float:
    """Return the contrast ratio of two colours (WCAG 2)."""
    light, dark = sorted((luminance(to_rgb(one)), luminance(to_rgb(other))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("sight", SIGHTS)
def test_seven_systems_differ(sight: str) -> None:
    """Readers of any sight can distinguish their lines and markers."""
    assert min_distance(sight, SYSTEMS[:7]) > MIN_DISTANCE


@pytest.mark.parametrize("sight", SIGHTS)
def test_the_tints_of_seven_systems_differ(sight: str) -> None:
    """The tiles of the winner map are paler than lines, and still distinguishable."""
    assert min_distance(sight, [tint(colour) for colour in SYSTEMS[:7]]) > MIN_DISTANCE


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("gradient", [RATE, SHARE], ids=["rate", "share"])
def test_a_gradient_gets_darker_all_the_way(sight: str, gradient) -> None:
    """Its steps are even, so that its order is visible without hues and in grey print."""
    lightness = [to_lab(sight, gradient(x))[0] for x in np.linspace(0, 1, 21)]
    steps = -np.diff(lightness)
    assert steps.min() > 1.5
    assert steps.max() < 3.2 * steps.min()


@pytest.mark.parametrize("gradient", [RATE, SHARE], ids=["rate", "share"])
def test_text_on_a_gradient_can_be_read(gradient) -> None:
    """The chosen colour, black or white, has a contrast of at least 4.5 to 1 (WCAG 2, AA)."""
    backgrounds = [to_rgb(gradient(x)) for x in np.linspace(0, 1, 101)]
    assert min(contrast(colour, PALE if is_dark(colour) else INK) for colour in backgrounds) >= 4.5


@pytest.mark.parametrize("colour", [*SYSTEMS, *COLOURS.values()])
def test_text_on_a_tint_can_be_read(colour: str) -> None:
    """Black text has a contrast of 4.5 to 1 in the winner map and in the map of bottlenecks."""
    assert contrast(tint(colour), INK) >= 4.5


@pytest.mark.parametrize("colour", SYSTEMS[:7])
def test_a_line_is_visible_on_a_page(colour: str) -> None:
    """Its contrast is at least 2 to 1 on a light and on a dark page; markers and names differ as well."""
    assert contrast(colour, "#ffffff") >= 2
    assert contrast(colour, PAGE["#ffffff"]) >= 2


@pytest.mark.parametrize("light", ["#1d2733", "#4a5563"])
def test_text_on_a_page_can_be_read(light: str) -> None:
    """Their contrast is 4.5 to 1 on a light and on a dark page."""
    assert contrast(light, "#ffffff") >= 4.5
    assert contrast(PAGE[light], PAGE["#ffffff"]) >= 4.5
