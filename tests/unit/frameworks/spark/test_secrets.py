"""Secrets of a site as Spark takes them."""

import stat
from pathlib import Path

from frameworks.spark import secrets


def test_only_the_owner_can_read_the_secret_of_a_session(tmp_path: Path) -> None:
    """The file is never readable by others, not even while it is written."""
    (tmp_path / "password").write_text("secret=#! \\ ü\n")
    secrets.write_defaults(tmp_path, str(tmp_path / "password"))
    written = tmp_path / "spark-defaults.conf"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    escaped = r"secret\u003d\u0023\u0021\u0020\u005c\u0020\u00fc"
    assert written.read_text() == f"spark.authenticate.secret={escaped}\n"
