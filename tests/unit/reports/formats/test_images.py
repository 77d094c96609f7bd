"""The pictures of a run."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

from pathlib import Path

import pytest
from sample_runs import SMALL, make_large_scenario, make_run

from reports.formats import images


@pytest.fixture(scope="module")
def drawn_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of two systems with its pictures."""
    run = make_run(tmp_path_factory.mktemp("results") / "run", SMALL)
    images.write(run)
    return run


def test_pictures_are_the_maps_and_a_timeline_for_each_cell(drawn_run: Path) -> None:
    """Each picture is written as SVG and as PNG."""
    names = {path.stem for path in (drawn_run / "figures").glob("*.svg")}
    kinds = ("map", "efficiency", "throughput", "cpu", "limits")
    systems = ("spark-tcp", "python-kafka")
    assert {"winners", "curves-0", "curves-1", *(f"{kind}-{system}" for kind in kinds for system in systems)} <= names
    timelines = [name for name in names if name.startswith("timeline-")]
    assert len(timelines) == 6  # 8 less the unsupported and the unfinished
    assert {path.stem for path in (drawn_run / "figures").glob("*.png")} == names


def test_the_same_run_gives_the_same_pictures(tmp_path: Path) -> None:
    """Nothing in a picture comes from the clock or from chance."""
    small = make_run(tmp_path / "run", make_large_scenario(2, 1, 1))
    images.write(small)
    before = {path: path.read_bytes() for path in small.glob("figures/*.svg")}
    images.write(small)
    assert before
    assert {path: path.read_bytes() for path in small.glob("figures/*.svg")} == before


@pytest.mark.parametrize(
    ("system", "claim"), [("python-kafka", "≥ 184 k/s"), ("spark-tcp", "≤ 89.7 /s")], ids=["least", "most"]
)
def test_a_bound_looks_like_one(drawn_run: Path, system: str, claim: str) -> None:
    """Its rate carries the sign, its cell a hatch."""
    svg = (drawn_run / "figures" / f"map-{system}.svg").read_text(encoding="utf-8")
    assert claim in svg
    assert "<pattern" in svg
