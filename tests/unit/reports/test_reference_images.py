"""Figures look as they did when somebody last looked at them: tests/pictures holds what was seen and found good.

`python -m tests.test_pictures` draws them anew, for whoever has changed a figure and has looked at it.
"""

import io
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

import numpy as np
from matplotlib.image import imread
from sample_runs import a_run

from reports.data.run_data import read_run_data
from reports.figures.catalog import figures_of

FOLDER = Path(__file__).with_name("images")
SEEN = ("winners", "map-spark-kafka", "limits-spark-kafka", "curves-1")
MAX_DIFFERENCE = 0.005
"""Mean over all pixels and colours, of 1: another version of the fonts' rasteriser differs by less, a missing word by more."""


def drawn():
    """Those figures of the sample run, by name."""
    with tempfile.TemporaryDirectory() as folder:
        pictures = figures_of(read_run_data(a_run(Path(folder) / "run")))
        return {picture.name: picture.png() for picture in pictures if picture.name in SEEN}


@pytest.fixture(scope="module")
def now():
    """What is drawn today."""
    return drawn()


@pytest.mark.parametrize("name", SEEN)
def test_a_figure_looks_as_it_did(now, name, tmp_path):
    """Pixel by pixel, but for what a rasteriser may do."""
    new, seen = imread(io.BytesIO(now[name])), imread(FOLDER / f"{name}.png")
    (tmp_path / f"{name}.png").write_bytes(now[name])
    assert new.shape == seen.shape, tmp_path
    assert np.abs(new - seen).mean() <= MAX_DIFFERENCE, tmp_path


if __name__ == "__main__":
    for name, content in drawn().items():
        (FOLDER / f"{name}.png").write_bytes(content)
