"""Colour scales and their bars; all maps of a kind share one scale, so that they can be compared."""

from collections.abc import Callable, Iterable

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, to_rgb
from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullFormatter
from msgspec import Struct

from reports.figures.palette import RATE, RGB, SHARE


class Scale(Struct, frozen=True):
    """A norm, a gradient, a function that formats values, and their unit."""

    norm: Normalize
    gradient: LinearSegmentedColormap
    text: Callable[[float], str]
    unit: str

    def colour(self, value: float) -> RGB:
        """Return the colour of a value; beyond an end of the scale, the colour of that end."""
        red, green, blue = to_rgb(
            self.gradient(self.norm(min(max(value, self.norm.vmin or 0.0), self.norm.vmax or value)))
        )
        return red, green, blue


def make_log_scale(values: Iterable[float], text: Callable[[float], str], unit: str) -> Scale:
    """Return a logarithmic scale, wide enough for all values."""
    positive = [value for value in values if value > 0]
    low, high = (min(positive), max(positive)) if positive else (1.0, 10.0)
    norm = LogNorm(low, high) if high > 1.5 * low else LogNorm(low / 3, high * 3)
    return Scale(norm, RATE, text, unit)


def make_share_scale(unit: str) -> Scale:
    """Return a linear scale of shares, from 0 to 1."""
    return Scale(Normalize(0.0, 1.0), SHARE, lambda share: f"{100 * share:.3g} %", unit)


def draw_scale(ax: Axes, scale: Scale) -> list[Artist]:
    """Draw the colour bar with its unit; return the artists."""
    bar = ax.figure.colorbar(ScalarMappable(scale.norm, scale.gradient), cax=ax)
    bar.outline.set_visible(False)
    low, high = ax.get_ylim()
    if isinstance(scale.norm, LogNorm):
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 30 * low else (1.0, 2.0, 5.0)))
    else:
        ax.yaxis.set_major_locator(MultipleLocator(0.25))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: scale.text(value)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(labelsize=7.5, length=2)
    ax.set_ylabel(scale.unit, fontsize=7.5)
    return [ax]
