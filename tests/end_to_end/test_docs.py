"""The documentation is true: its reference is current, its links lead somewhere, its commands run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bench.storage.run_folder import read_results, read_run
from docs import reference_page

ROOT = Path(__file__).parents[2]

TREES = ("docs", "infra", "frameworks")
PAGES = [*sorted(ROOT.glob("*.md")), *(page for tree in TREES for page in sorted((ROOT / tree).rglob("*.md")))]
CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]  # it also names what is gone
FOLDERS = ("bench", "producers", "consumers", "frameworks", "reports", "infra", "scenarios", "docs", "tests", ".ci")
FILE_NAME = re.compile(
    rf"(?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*|[\w./-]+\.(?:py|md|yaml|yml|sh|typ|toml|lock)"
)
"""A text in backticks that is the name of a file or folder of this repository."""
MADE = {"infra/ansible/collected", "figures.md"}
"""Folders and files that commands of the pages make."""
BENCH = (sys.executable, "-m", "bench")


def said(*command: str, cwd: Path, **environment: str) -> str:
    """Return what a command prints; its exit code must be 0 or 4."""
    known = {**os.environ, "XDG_STATE_HOME": str(cwd / "state"), **environment}
    done = subprocess.run(command, cwd=cwd, env=known, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode in (0, 4), (
        done.stdout + done.stderr
    )  # 4: this machine was busy with other work during a trial
    return done.stdout + done.stderr


def test_the_reference_is_current() -> None:
    """`python -m docs.reference_page` would change nothing."""
    assert reference_page.FILE.read_text(encoding="utf-8") == reference_page.text()


def test_the_example_is_a_run_that_can_be_read() -> None:
    """Its record and its results are whole, so that commands for runs work on it."""
    folder = ROOT / "docs" / "example"
    assert len(read_results(folder)) == len(read_run(folder).scenario.cells())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    """Pages and pictures are there."""
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    links += re.findall(r'(?:src|href)="([^"#]+)"', page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.fixture(scope="module")
def paths() -> list[str]:
    """Return every file and folder of the repository, relative to it and with a slash at both ends."""
    found = [*ROOT.iterdir(), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    return [f"/{path.relative_to(ROOT).as_posix()}/" for path in found]


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path, paths: list[str]) -> None:
    """A name in backticks is the whole path of a file or folder, or its end."""
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = {name.strip("/") for name in re.findall(r"`([^`]+)`", prose) if FILE_NAME.fullmatch(name)}
    assert [name for name in sorted(named - MADE) if not any(path.endswith(f"/{name}/") for path in paths)] == []


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_that_are_run_have_a_main(page: Path) -> None:
    """`python -m` of a module of ours runs something."""
    modules = set(re.findall(r"python -m ([\w.]+)", page.read_text(encoding="utf-8")))
    ours = [ROOT / module.replace(".", "/") for module in modules if module.partition(".")[0] in FOLDERS]
    files = [path / "__main__.py" if path.is_dir() else path.with_suffix(".py") for path in ours]
    assert [file for file in files if not file.exists()] == []
    assert [file for file in files if file.stem != "__main__" and "__main__" not in file.read_text("utf-8")] == []


@pytest.mark.real
def test_the_two_minute_start_of_the_readme_runs(tmp_path: Path) -> None:
    """Every command of it, one after the other, as it stands there."""
    start = (ROOT / "README.md").read_text(encoding="utf-8").split("## Two minutes", 1)[1]
    block = re.findall(r"```sh\n(.*?)```", start, flags=re.DOTALL)[0]
    commands = [line.partition("#")[0].strip() for line in block.splitlines() if line.strip()]
    assert commands[0] == "make setup"  # whoever runs this test has done it
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    for command in commands[1:]:
        words = shlex.split(command)
        assert words[0] == ".venv/bin/bench"
        found = [str(path) for word in words[1:] for path in (sorted(tmp_path.glob(word)) if "*" in word else [word])]
        said(*BENCH, *found, cwd=tmp_path)
    assert list(tmp_path.glob("results/smoke-*/report.html"))
