"""Figures look like the reference images in images/, which somebody has checked by eye.

`PYTHONPATH=tests:. python tests/unit/reports/figures/test_reference_images.py` renews them after a deliberate
change.
"""

import io
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

import numpy as np
from matplotlib.image import imread
from sample_runs import make_run

from reports.data.run_data import read_run_data
from reports.figures.catalog import make_figures

FOLDER = Path(__file__).with_name("images")
CHECKED = ("winners", "map-spark-kafka", "limits-spark-kafka", "curves-1")
MAX_DIFFERENCE = 0.005
"""Mean over all pixels and colours, of 1: other versions of the rasteriser differ by less, a missing word by more."""


def draw_figures():
    """Return the checked figures of the sample run, by name."""
    with tempfile.TemporaryDirectory() as folder:
        pictures = make_figures(read_run_data(make_run(Path(folder) / "run")))
        return {picture.name: picture.png() for picture in pictures if picture.name in CHECKED}


@pytest.fixture(scope="module")
def current():
    """Return the figures of the current code."""
    return draw_figures()


@pytest.mark.parametrize("name", CHECKED)
def test_a_figure_looks_like_its_reference(current, name, tmp_path):
    """Its pixels differ by no more than those of two rasterisers."""
    new, reference = imread(io.BytesIO(current[name])), imread(FOLDER / f"{name}.png")
    (tmp_path / f"{name}.png").write_bytes(current[name])
    assert new.shape == reference.shape, tmp_path
    assert np.abs(new - reference).mean() <= MAX_DIFFERENCE, tmp_path


if __name__ == "__main__":
    for name, content in draw_figures().items():
        (FOLDER / f"{name}.png").write_bytes(content)
