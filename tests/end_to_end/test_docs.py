"""What the documentation says is so: its reference is current, its links lead somewhere, its plugin is added, its commands run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from docs import reference_page

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BENCH = (sys.executable, "-m", "bench")


def said(*command: str, cwd: Path, **environment: str) -> str:
    """What a command prints; it has to end well."""
    known = {**os.environ, "XDG_STATE_HOME": str(cwd / "state"), **environment}
    done = subprocess.run(command, cwd=cwd, env=known, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode in (0, 4), (
        done.stdout + done.stderr
    )  # 4: this machine was busy with other work during a trial
    return done.stdout + done.stderr


def test_the_reference_is_current() -> None:
    """`python -m docs.reference_page` would change nothing."""
    assert reference_page.FILE.read_text(encoding="utf-8") == reference_page.text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    """Pages and pictures are there."""
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    links += re.findall(r'(?:src|href)="([^"#]+)"', page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.real
def test_a_plugin_from_outside_is_added(tmp_path: Path) -> None:
    """The example is built and installed like anybody's, is listed, refuses a wrong setting, and measures."""
    packages = tmp_path / "packages"
    install = (
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--target",
        str(packages),
    )
    said(*install, str(ROOT / "docs" / "example-room"), cwd=tmp_path)
    assert "onethread" in said(*BENCH, "plugins", cwd=tmp_path, PYTHONPATH=str(packages))
    scenario = str(ROOT / "scenarios" / "smoke.yaml")
    changes = (
        "--set",
        "systems=onethread/memory",
        "--set",
        "grid.message_size=100B",
        "--set",
        "settings={onethread: {most: 500}}",
    )
    said(*BENCH, "run", scenario, *changes, "--out", str(tmp_path / "results"), cwd=tmp_path, PYTHONPATH=str(packages))
    (cells,) = (tmp_path / "results").glob("*/cells.json")
    assert '"system": "onethread/memory"' in cells.read_text()


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
