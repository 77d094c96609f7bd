"""The log of a run has what the harness and its plugins tell of it."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.cli.run_display import _log_to


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    """Lend the root logger without handlers; restore it afterwards."""
    root = logging.getLogger()
    kept, level, root.handlers = root.handlers, root.level, []
    yield root
    for handler in root.handlers:
        handler.close()
    root.handlers = kept
    root.setLevel(level)


@pytest.mark.usefixtures("root_logger")
def test_a_plugins_information_reaches_the_log(tmp_path: Path) -> None:
    """Of other packages only the warnings do."""
    _log_to(tmp_path / "harness.log", {"third_party"})
    logging.getLogger("third_party.source").info("opened")
    logging.getLogger("some_client").info("connected")
    logging.getLogger("some_client").warning("disconnected")
    lines = (tmp_path / "harness.log").read_text().splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == [
        "INFO third_party.source: opened",
        "WARNING some_client: disconnected",
    ]
