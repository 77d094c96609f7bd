"""The example of plugins outside the repository (docs/example-plugin), installed from outside and used by each verb."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.services.ports import free_ports

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "example-plugin"
SCENARIO = str(EXAMPLE / "scenario.yaml")
SYSTEMS = ["python/redis-stream", "onethread/redis-stream"]
TIMEOUT_S = 280.0
PASSWORD = "not-a-secret"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is missing; run: make setup"),
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the example, as it installs anybody's package."""
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("source") / "example", ignore=_built)  # pip builds in it
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*pip, "--target", str(folder), str(source)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def _built(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name in ("build", "__pycache__") or name.endswith(".egg-info")]


def run_tool(installed: Path, tmp_path: Path, *command: str, exit_code: int = 0, cwd: Path | None = None) -> str:
    """Return what a Python command prints on both outputs, with the example installed; it must end with the code."""
    variables = {**os.environ, "PYTHONPATH": str(installed), "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd or tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout + done.stderr


def run_scenario(installed: Path, tmp_path: Path, site: str, *changes: str) -> Path:
    """Run the example's scenario; return the run folder.

    The site says that the machine is shared: other work on it, such as other tests, makes no trial invalid.
    """
    site_file = tmp_path / "site.yaml"
    site_file.write_text(f"shared_machine: true\n{site}")
    run_tool(
        installed, tmp_path, "-m", "bench", "run", SCENARIO, "--site", str(site_file), *changes,
        "--out", str(tmp_path / "results"),
    )  # fmt: skip
    (folder,) = (tmp_path / "results").iterdir()
    return folder


def require_complete(run: Path, systems: list[str]) -> None:
    """Assert that the run has a result for each system, that nothing was lost, and that the report names them."""
    cells = json.loads((run / "cells.json").read_text())["cells"]
    assert [cell["system"] for cell in cells] == systems
    assert {cell["status"] for cell in cells} <= {"measured", "lower-bound", "upper-bound"}, cells
    for cell in cells:
        assert cell["processed"] == cell["sent"] > 0
        assert cell["lost"] == cell["duplicated"] == cell["corrupted"] == 0
    page = (run / "report.html").read_text()
    assert all(system in page for system in systems)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """The address of a Redis that asks for PASSWORD: a service of the site, which the harness did not start."""
    (port,) = free_ports(1)
    options = ["--bind", "127.0.0.1", "--port", str(port), "--requirepass", PASSWORD, "--save", ""]
    server = subprocess.Popen(["redis-server", *options], cwd=tmp_path, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not _listens(port):
        assert time.monotonic() < deadline, "redis-server does not listen"
        assert server.poll() is None, "redis-server ended"
        time.sleep(0.05)
    yield f"127.0.0.1:{port}"
    server.terminate()
    server.wait(timeout=30)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def test_the_plugins_are_listed(installed, tmp_path):
    """`bench plugins` lists them by kind, beside our own."""
    listed = run_tool(installed, tmp_path, "-m", "bench", "plugins")
    assert re.search(r"^sources .*\bredis-stream\b", listed, re.MULTILINE)
    assert re.search(r"^consumers .*\bredis-stream\b", listed, re.MULTILINE)
    assert re.search(r"^frameworks .*\bonethread\b", listed, re.MULTILINE)


def test_a_wrong_setting_is_refused_and_a_harmful_one_gets_a_warning(installed, tmp_path):
    """The plugin's own settings type and its own warnings decide."""
    check = ("-m", "bench", "check", SCENARIO, "--set")
    wrong = run_tool(installed, tmp_path, *check, "settings.redis-stream.partition=1", exit_code=2)
    assert "did you mean 'partitions'?" in wrong
    harmful = run_tool(installed, tmp_path, *check, "settings.redis-stream.retained=1 kB")
    assert "warning: settings.redis-stream.retained" in harmful


def test_a_missing_package_is_named_with_the_distribution_that_brings_it(installed, tmp_path):
    """It is the plugin's own, not stream-bench."""
    (tmp_path / "redis.py").write_text("raise ModuleNotFoundError('No module named redis', name='redis')\n")
    problem = run_tool(installed, tmp_path, "-m", "bench", "check", SCENARIO, exit_code=2)
    assert "run: pip install stream-bench-redis" in problem


def test_the_doctor_finds_that_the_server_is_missing(installed, tmp_path):
    """It gives the command that installs it."""
    only_java = tmp_path / "bin"
    only_java.mkdir()
    code = "import os, sys; os.environ['PATH'] = sys.argv.pop(1); from bench.__main__ import main; main()"
    findings = run_tool(installed, tmp_path, "-c", code, str(only_java), "doctor", exit_code=3)
    assert "BAD  redis-server is not installed; run: apt-get install redis-server" in findings


def test_the_doctor_and_the_estimate_know_the_section_of_the_site_file(installed, tmp_path):
    """An unknown password file and a port at which nobody listens are findings."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    site = tmp_path / "site.yaml"
    site.write_text(f"redis: {{address: '{address}', password_file: /nowhere/password}}\n")
    findings = run_tool(installed, tmp_path, "-m", "bench", "doctor", "--site", str(site), exit_code=3)
    assert "BAD  site.redis.password_file: /nowhere/password cannot be read" in findings
    assert f"BAD  redis at {address}: no connection" in findings
    assert f"redis at {address}: its password goes over an unencrypted connection" in findings
    estimate = run_tool(installed, tmp_path, "-m", "bench", "plan", SCENARIO, "--site", str(site))
    assert f"missing  redis at {address}: no connection" in estimate


def test_the_estimate_has_all_cells(installed, tmp_path):
    """None of them is unsupported, and nothing is missing."""
    estimate = run_tool(installed, tmp_path, "-m", "bench", "plan", SCENARIO)
    assert "cells    2 (2 systems), 0 of them unsupported" in estimate
    assert "missing  nothing" in estimate


def test_both_systems_are_measured_with_the_embedded_server(installed, tmp_path):
    """The run records the client's version and the server's configuration, and leaves no data behind."""
    run = run_scenario(installed, tmp_path, "")
    require_complete(run, SYSTEMS)
    assert re.search(r'"redis":\s*"\d', (run / "run.json").read_text())
    assert "maxmemory-policy noeviction" in (run / "logs" / "redis.conf").read_text()
    assert not (run / "data").exists()


def test_a_system_is_measured_with_the_redis_of_a_site(installed, tmp_path, redis):
    """No server is started, and the password is in no file of the run."""
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    site = f"redis: {{address: '{redis}', password_file: '{secret}'}}\n"
    run = run_scenario(installed, tmp_path, site, "--set", "systems=onethread/redis-stream")
    require_complete(run, ["onethread/redis-stream"])
    files = [file for file in run.rglob("*") if file.is_file()]
    assert not (run / "logs" / "redis.log").exists()
    assert [file for file in files if PASSWORD.encode() in file.read_bytes()] == []


def test_the_load_generator_is_compared_with_the_baseline_producer(installed, tmp_path):
    """`bench calibrate` has a row of both."""
    command = ("calibrate", "redis-stream", "--against", "client-loop", "--sizes", "1kB", "--runs", "1")
    few = ("--seconds", "0.8", "--out", str(tmp_path / "results"))
    table = run_tool(installed, tmp_path, "-m", "bench", *command, *few)
    assert re.search(r"^redis-stream +1 kB +[\d.]+ k?/s", table, re.MULTILINE)


def test_the_contract_suites_pass(installed, tmp_path):
    """In a checkout of stream-bench they run on every installed plugin."""
    suites = ("-m", "pytest", "tests/contract", "-k", "redis or onethread", "-q", "-p", "no:cacheprovider")
    result = run_tool(installed, tmp_path, *suites, cwd=ROOT)
    assert re.search(r"\b[1-9]\d* passed", result)
