"""The colours of all figures: colour-blind readers can distinguish them, also in print, on a light or a dark page.

Text *on a tile* and text *on the page* have different colours although they look alike: a dark page replaces the
colours of PAGE by its style and leaves the others as they are.
"""

from collections.abc import Sequence

from matplotlib.colors import LinearSegmentedColormap, to_rgb

RGB = tuple[float, float, float]

SYSTEMS = ("#0072B2", "#E69F00", "#117733", "#B39DDB", "#D55E00", "#66C2A5", "#5B6B7B", "#882255", "#CC79A7")
"""Of systems, in the scenario's order. The first seven and their tints differ by at least 13 in CIELAB for every sight
(protanopia, deuteranopia, tritanopia): the best set of a search over those of Okabe and Ito (2008), Tol and others.
Beyond seven, markers and names tell systems apart."""
TINT = 0.6
"""Share of a colour in its tint; the rest is white."""
RATE = LinearSegmentedColormap.from_list("stream", ["#f3f7d9", "#bfe3c6", "#6cc1c0", "#2f8fb8", "#2560a3", "#1c2f6b"])
"""Of rates: from pale to dark in even steps of lightness, readable in grey print and without red or green."""
SHARE = LinearSegmentedColormap.from_list("share", ["#fff1d6", "#f6cf9b", "#e0a07c", "#b5697a", "#7a3f76", "#3f2462"])
"""Of shares; another gradient, so that a share is not mistaken for a rate."""
INK, PALE, GREY, RED, AMBER = "#02060a", "#fffffe", "#565f69", "#a82a1f", "#d55e00"
"""Of text on tiles; on any background one of the first two has a contrast of 4.5 to 1."""
EMPTY, UNSUPPORTED, FAILED, DOTS = "#fdfdfd", "#e8eaed", "#fdecea", "#c3cad2"

PAGE_INK, PAGE_GREY, BLUE = "#1d2733", "#6b7480", "#2560a3"
"""Of points and lines on the page itself."""
PAGE = {
    PAGE_INK: "#e8edf2", "#4a5563": "#b4bfcb", "#8c96a3": "#7d8894", "#e3e7ec": "#39434e", "#ffffff": "#161b21",
    "#f2f5f8": "#222a33", "#0b3c6f": "#7fb2e5", PAGE_GREY: "#a3adb8", "#fdfdfd": "#d3d9df",
}  # fmt: skip
"""Colours on the page itself, as in the style file, and their replacements on a dark page."""


def assign_colours(systems: Sequence[str]) -> dict[str, str]:
    """Return a colour for each system, in the scenario's order."""
    return {system: SYSTEMS[number % len(SYSTEMS)] for number, system in enumerate(systems)}


def tint(colour: str) -> RGB:
    """Return a colour mixed with white, so that black text on it can be read."""
    red, green, blue = to_rgb(colour)
    return (1 - TINT * (1 - red), 1 - TINT * (1 - green), 1 - TINT * (1 - blue))


def is_dark(colour: RGB) -> bool:
    """Return True if white text on a colour has more contrast than black text, by relative luminance (WCAG 2)."""
    return luminance(colour) < 0.183


def luminance(colour: RGB) -> float:
    """Return the relative luminance of a colour, 0 to 1 (WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
