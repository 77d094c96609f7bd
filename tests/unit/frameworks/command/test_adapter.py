"""A program that cannot be run is refused with its reason."""

import sys
from pathlib import Path
from typing import Any

import pytest

from bench.config.validation import parse_scenario
from bench.config.yaml_document import read_document
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.plugins import registry
from frameworks.command import adapter

CELL = Cell("command", "kafka", 1000, 0.01)


TINY_LOCK = "tiny:\n  org.jspecify:jspecify:1.0.0: 1fad6e6b\n"


def unsupported_reason(source: str = "kafka", **settings: Any) -> str | None:
    """Return why the program of these settings cannot process a cell."""
    return registry.make_framework("command", {"command": settings}).unsupported_reason(CELL, source)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"run": ""}, "give a command line, or `none`"),
        ({"run": "'open"}, "No closing quotation"),
        ({"run": "none"}, "a program that runs already waits for this file"),
        ({"run": "none", "file": "x", "ready": "yes"}, "the output of a program that runs already is not seen"),
        ({"listen": "0.0.0.0:9400"}, r"no program can connect to 0\.0\.0\.0:9400"),
        ({"listen": "nowhere"}, "settings.command.listen"),
        ({"cores": 0}, "settings.command.cores"),
        ({"run": "java -cp {jars} X.java"}, "needs a lock file"),
    ],
    ids=["nothing", "a quote", "no file", "no output", "any address", "no port", "no core", "no jars"],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], message: str) -> None:
    """In one line."""
    with pytest.raises(UsageError, match=message):
        registry.make_framework("command", {"command": settings})


def test_a_program_that_is_not_there_makes_a_cell_unsupported() -> None:
    """The example, which is ours, is there; so is one that runs already."""
    assert unsupported_reason() is None
    assert unsupported_reason(run="none", file="x.json") is None
    assert unsupported_reason(run="{python} x.py") is None
    assert "found no program 'no-such-program'" in (unsupported_reason(run="no-such-program --fast") or "")


def test_a_program_that_it_needs_and_is_not_there_makes_a_cell_unsupported() -> None:
    """The line names the setting and the program; those that are there are no hindrance."""
    assert unsupported_reason(needs=["sh"]) is None
    reason = "settings.command.needs: found no program 'no-such-program'; install it"
    assert unsupported_reason(needs=["sh", "no-such-program"]) == reason


def test_kafka_streams_without_a_compiler_is_unsupported(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java's runtime alone does not make the cells of scenarios/engines.yaml fail."""
    scenario = parse_scenario(read_document(request.config.rootpath / "scenarios" / "engines.yaml"))
    monkeypatch.setattr(adapter.shutil, "which", lambda name: None if name == "javac" else name)
    framework = registry.make_framework("command", scenario.settings)
    assert "found no program 'javac'" in (framework.unsupported_reason(CELL, "kafka") or "")


def test_reports_need_topics_to_go_to_one() -> None:
    """A socket has none."""
    assert unsupported_reason(reports="topic") is None
    assert "tcp has no topics for results" in (unsupported_reason("tcp", reports="topic") or "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TINY_LOCK, None),
        ("other: {}\n", "no set of jars named 'tiny'"),
        ("{", "no set of jars named 'tiny'"),
        (None, "cannot be read"),
    ],
    ids=["right", "another set", "no YAML", "no file"],
)
def test_a_lock_file_of_jars_must_list_them(tmp_path: Path, text: str | None, reason: str | None) -> None:
    """Its set is named as the file is."""
    lock = tmp_path / "tiny.lock"
    if text is not None:
        lock.write_text(text)
    found = unsupported_reason(jars=str(lock))
    assert (found is None) == (reason is None)
    assert reason is None or reason in (found or "")


def test_python_in_the_command_is_the_harnesss_own() -> None:
    """So the example needs no activated environment."""
    framework = registry.make_framework("command", {"command": {"run": "{python} -c 1"}})
    assert framework._command == [sys.executable, "-c", "1"]
