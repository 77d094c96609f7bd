"""An environment of a plugin is made once, holds what its lock file has, and finds the harness that starts it."""

import sys
from pathlib import Path

import pytest

from bench.errors import ServiceError, UsageError
from bench.services import python_environments
from bench.services.python_environments import PythonEnvironment, install, interpreter, missing_reason, variables
from bench.system.supervisor import run_tool

OURS = f"{sys.version_info.major}.{sys.version_info.minor}"


def environment_with(folder: Path, requirements: str = "# nothing\n", *versions: str) -> PythonEnvironment:
    """Return an environment with these requirements, for our own Python if no other is named."""
    folder.mkdir(exist_ok=True)
    (folder / "requirements.lock").write_text(requirements)
    return PythonEnvironment("tiny", folder / "requirements.lock", 7, versions or (OURS,))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> tuple[PythonEnvironment, Path, list[str]]:
    """Return an installed environment without any package, its cache, and what was told meanwhile."""
    folder, told = tmp_path_factory.mktemp("environments"), list[str]()
    environment = environment_with(folder / "plugin")
    install(environment, folder / "cache", told.append)
    return environment, folder / "cache", told


def test_what_is_missing_is_told_with_its_size_and_the_command(tmp_path: Path) -> None:
    """Nothing is made for it."""
    environment = environment_with(tmp_path)
    assert missing_reason(environment, tmp_path / "cache") == "tiny is not installed (7 MB); run: bench install tiny"
    with pytest.raises(UsageError, match="run: bench install tiny"):
        interpreter(environment, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_an_installed_environment_is_complete(empty: tuple[PythonEnvironment, Path, list[str]]) -> None:
    """Its Python is of the version that was asked for, and each step was told."""
    environment, cache, told = empty
    assert missing_reason(environment, cache) is None
    said = run_tool([str(interpreter(environment, cache)), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    assert said.strip() == OURS
    assert told[0] == f"tiny: making an environment of Python {OURS}"


def test_an_installed_environment_is_not_made_again(empty: tuple[PythonEnvironment, Path, list[str]]) -> None:
    """Nothing is told, and its folder is the same."""
    environment, cache, _ = empty
    assert interpreter(environment, cache).is_relative_to(install(environment, cache, pytest.fail))


def test_a_program_finds_our_packages_and_nothing_else_of_ours(
    empty: tuple[PythonEnvironment, Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness's own packages come from this checkout; msgspec, which the lock file does not have, is not seen."""
    environment, cache, _ = empty
    for name, value in variables(environment, cache).items():
        monkeypatch.setenv(name, value)
    program = "import bench.errors, frameworks, importlib.util as u; print(bench.__file__, u.find_spec('msgspec'))"
    found, msgspec = run_tool([str(interpreter(environment, cache)), "-c", program]).rsplit(maxsplit=1)
    assert Path(found).resolve() == Path(python_environments.__file__).parents[1] / "__init__.py"
    assert msgspec == "None"


def test_another_checkout_has_links_of_its_own(
    empty: tuple[PythonEnvironment, Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two harnesses that share a cache start programs with their own code."""
    environment, cache, _ = empty
    ours = variables(environment, cache)["PYTHONPATH"]
    assert variables(environment, cache)["PYTHONPATH"] == ours
    monkeypatch.setattr(python_environments, "_own_packages", lambda: {"bench": cache})
    theirs = Path(variables(environment, cache)["PYTHONPATH"])
    assert str(theirs) != ours
    assert (theirs / "bench").resolve() == cache


def test_another_lock_file_is_another_environment(empty: tuple[PythonEnvironment, Path, list[str]]) -> None:
    """The one that is there is not used for it."""
    environment, cache, _ = empty
    changed = environment_with(cache.parent / "changed", "# something else\n")
    assert missing_reason(environment, cache) is None
    assert missing_reason(changed, cache) is not None


def test_no_right_python_is_told(tmp_path: Path) -> None:
    """The line names the versions; installing is refused with it."""
    environment = environment_with(tmp_path, "# nothing\n", "2.1", "2.2")
    reason = missing_reason(environment, tmp_path / "cache") or ""
    assert reason.startswith(
        "tiny (7 MB) needs Python 2.1 or 2.2 with its venv module, and found none; put one on the PATH"
    )
    with pytest.raises(UsageError, match=r"needs Python 2\.1 or 2\.2"):
        install(environment, tmp_path / "cache", pytest.fail)


def test_a_python_that_does_not_start_is_not_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shim of a version that is not there ends with an error."""
    shim = tmp_path / "python2.3"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "found none" in (missing_reason(environment_with(tmp_path, "# nothing\n", "2.3"), tmp_path / "cache") or "")


@pytest.mark.parametrize(
    ("packaged", "message"),
    [(False, r"is this machine online\?"), (True, r"a package is not the one of requirements\.lock")],
    ids=["not to be had", "another one"],
)
def test_what_cannot_be_installed_is_one_line_with_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packaged: bool, message: str
) -> None:
    """No half of an environment is used afterwards."""
    if packaged:
        (tmp_path / "tiny-1.0.tar.gz").write_bytes(b"not the pinned one")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    environment = environment_with(tmp_path / "plugin", f"tiny==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(ServiceError, match=rf"tiny could not be installed; {message} \(log: .*install.*\.log\)"):
        install(environment, tmp_path / "cache", lambda _line: None)
    assert missing_reason(environment, tmp_path / "cache") is not None
