"""Secrets of a site as Spark takes them: never in the arguments of a process, which every account can read."""

import os
from pathlib import Path

from bench.services.credentials import read_secret


def write_defaults(folder: Path, password_file: str) -> None:
    """Write the secret of a secured cluster into spark-defaults.conf of a session, which only its owner can read.

    Args:
        folder: the session's SPARK_CONF_DIR.
        password_file: its first line is the secret.

    Raises:
        SiteError: the file cannot be read.
    """
    secret = read_secret(password_file)
    with open(folder / "spark-defaults.conf", "w", encoding="ascii", opener=_open_private) as file:
        file.write(f"spark.authenticate.secret={_escape_property(secret)}\n")


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)


def _escape_property(text: str) -> str:
    r"""Return a text as a value of a Java properties file: each character that may mean something as \uXXXX."""
    units = text.encode("utf-16-be")
    pairs = [units[at : at + 2] for at in range(0, len(units), 2)]
    return "".join(
        chr(pair[1]) if pair[0] == 0 and pair[1] < 128 and chr(pair[1]).isalnum() else f"\\u{pair.hex()}"
        for pair in pairs
    )
