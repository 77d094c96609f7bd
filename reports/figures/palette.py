"""The colours of every figure: told apart by colour-blind readers, in print, and on a light or a dark page.

Ink *on a tile* and ink *on the page* are different values although they look alike: a dark page replaces the colours of PAGE in
its own style and leaves the figures as they are.
"""

from collections.abc import Sequence

from matplotlib.colors import LinearSegmentedColormap, to_rgb

RGB = tuple[float, float, float]

SYSTEMS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#332288", "#882255")
"""Okabe and Ito's colours (2008); the last two are Tol's."""
RATE = LinearSegmentedColormap.from_list("stream", ["#f3f7d9", "#bfe3c6", "#6cc1c0", "#2f8fb8", "#2560a3", "#1c2f6b"])
"""From pale to dark in even steps of lightness, so that it also reads in grey print and without red or green."""
SHARE = LinearSegmentedColormap.from_list("share", ["#fff1d6", "#f6cf9b", "#e0a07c", "#b5697a", "#7a3f76", "#3f2462"])
"""The same for shares, so that a share is never taken for a rate."""
INK, PALE, GREY, RED, AMBER = "#02060a", "#fffffe", "#565f69", "#a82a1f", "#d55e00"
"""On tiles; the first two are so dark and so light that one of them can be read on any ground (4.5 to 1)."""
EMPTY, UNSUPPORTED, FAILED, DOTS = "#fdfdfd", "#e8eaed", "#fdecea", "#c3cad2"

PAGE = {
    "#1d2733": "#e8edf2", "#4a5563": "#b4bfcb", "#8c96a3": "#7d8894", "#e3e7ec": "#39434e", "#ffffff": "#161b21",
    "#f2f5f8": "#222a33", "#0b3c6f": "#7fb2e5", "#6b7480": "#a3adb8", "#fdfdfd": "#d3d9df",
}  # fmt: skip
"""What lies on the page itself, and what a dark page makes of it; the first four and the background are the style file's."""


def colours_of(systems: Sequence[str]) -> dict[str, str]:
    """A colour for each system, in the scenario's order."""
    return {system: SYSTEMS[number % len(SYSTEMS)] for number, system in enumerate(systems)}


def tint(colour: str) -> RGB:
    """A colour pale enough to be written on in black."""
    red, green, blue = to_rgb(colour)
    return (1 - 0.45 * (1 - red), 1 - 0.45 * (1 - green), 1 - 0.45 * (1 - blue))


def is_dark(colour: RGB) -> bool:
    """Whether white text is easier to read on a colour than black text, by relative luminance (WCAG 2)."""
    return luminance(colour) < 0.183


def luminance(colour: RGB) -> float:
    """Relative luminance, 0 to 1 (WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
