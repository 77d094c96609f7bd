"""Figures without pyplot: set in one style whatever the person's own settings are, and the same bytes for the same run."""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib import rc_params_from_file
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("stream.mplstyle")
FONTS = Path(mpl.get_data_path()) / "fonts" / "ttf"
LEFT, RIGHT, TOP, BOTTOM = 0.95, 0.15, 0.38, 0.78
"""Margins around the axes of a map, in inches."""


class Picture:
    """A figure that is not drawn yet: its name, how to draw it into an empty figure, and what it shows in a few words."""

    def __init__(self, name: str, draw: Callable[[Figure], None], title: str) -> None:
        self.name, self.title = name, title
        self._draw = draw
        self._svg = ""

    def svg(self) -> str:
        """The whole SVG file; its text is text."""
        self._svg = self._svg or self._saved("svg").decode()
        return self._svg

    def png(self) -> bytes:
        return self._saved("png")

    def width_mm(self) -> float:
        """How wide it is in print."""
        return float(re.findall(r'<svg[^>]* width="([0-9.]+)pt"', self.svg())[0]) * 25.4 / 72

    def _saved(self, kind: str) -> bytes:
        with _styled(self.name):
            figure = Figure()
            FigureCanvasAgg(figure)
            self._draw(figure)
            out = io.BytesIO()
            figure.savefig(
                out, format=kind, metadata={"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
            )
            return out.getvalue()


@contextmanager
def _styled(name: str) -> Iterator[None]:
    """Our style and nothing else; ids in an SVG come from the figure's name instead of from chance."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(rc_params_from_file(STYLE, use_default_template=False))
        mpl.rcParams["svg.hashsalt"] = f"stream-bench {name}"
        yield
