"""The environment of Spark's driver."""

from pathlib import Path

from frameworks.spark.session import _environment


def test_temporary_folders_of_a_driver_are_its_sessions(tmp_path: Path) -> None:
    """A killed driver leaves them in the run's data, which is deleted."""
    assert _environment(tmp_path, {})["TMPDIR"] == str(tmp_path)
