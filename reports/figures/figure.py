"""Figures without pyplot, in one style whatever the user's own settings are: the same run gives the same bytes."""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib import rc_params_from_file
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from bench.errors import UsageError

STYLE = Path(__file__).with_name("stream.mplstyle")
FONTS = Path(mpl.get_data_path()) / "fonts" / "ttf"
LEFT, RIGHT, TOP, BOTTOM = 0.95, 0.15, 0.38, 0.78
"""Margins around the axes of a map, in inches."""


class Picture:
    """A figure that is drawn on demand: its name, the function that draws it into an empty figure, and its title."""

    def __init__(self, name: str, draw: Callable[[Figure], None], title: str) -> None:
        self.name, self.title = name, title
        self._draw = draw
        self._svg = ""

    def svg(self) -> str:
        """Return the SVG file, whose text is text, not paths."""
        self._svg = self._svg or self._render("svg").decode()
        return self._svg

    def png(self) -> bytes:
        """Return the PNG file."""
        return self._render("png")

    def save(self, file: Path) -> Path:
        """Write the figure; its kind is the ending of the file, .png or .svg. Raises UsageError where that fails."""
        if file.suffix not in (".png", ".svg"):
            raise UsageError(f"{file}: a plot is a .png or a .svg file")
        try:
            file.write_bytes(self.png() if file.suffix == ".png" else self.svg().encode())
        except OSError as problem:
            raise UsageError(f"{file}: cannot be written ({problem.strerror})") from None
        return file

    def width_mm(self) -> float:
        """Return the width in print, in mm."""
        return float(re.findall(r'<svg[^>]* width="([0-9.]+)pt"', self.svg())[0]) * 25.4 / 72

    def _render(self, kind: str) -> bytes:
        with _use_style(self.name):
            figure = Figure()
            FigureCanvasAgg(figure)
            self._draw(figure)
            out = io.BytesIO()
            figure.savefig(
                out, format=kind, metadata={"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
            )
            return out.getvalue()


@contextmanager
def _use_style(name: str) -> Iterator[None]:
    """Use our style and nothing else; ids in an SVG come from the figure's name, not from chance."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(rc_params_from_file(STYLE, use_default_template=False))
        mpl.rcParams["svg.hashsalt"] = f"stream-bench {name}"
        yield
