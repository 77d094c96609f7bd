"""The pictures of a run."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

from pathlib import Path

import pytest


def test_pictures_are_the_maps_and_a_timeline_for_each_cell(reported_run: Path) -> None:
    """Each picture is written as SVG and as PNG."""
    names = {path.stem for path in (reported_run / "figures").glob("*.svg")}
    kinds = ("map", "efficiency", "throughput", "cpu", "limits")
    systems = ("spark-tcp", "spark-files", "spark-kafka", "python-kafka")
    assert {"winners", "curves-0", "curves-1", *(f"{kind}-{system}" for kind in kinds for system in systems)} <= names
    assert (
        len([name for name in names if name.startswith("timeline-")]) == 22
    )  # 24 less the unsupported and the unfinished
    assert {path.stem for path in (reported_run / "figures").glob("*.png")} == names


@pytest.mark.parametrize(
    ("system", "claim"), [("python-kafka", "≥ 184 k/s"), ("spark-tcp", "≤ 89.7 /s")], ids=["least", "most"]
)
def test_a_bound_looks_like_one(reported_run: Path, system: str, claim: str) -> None:
    """Its rate carries the sign, its cell a hatch."""
    svg = (reported_run / "figures" / f"map-{system}.svg").read_text(encoding="utf-8")
    assert claim in svg
    assert "<pattern" in svg
