"""A run can be looked at while it goes on, by reading its folder alone."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from sample_runs import QUICK, a_run, an_open_store, result_of

from bench.config.scenario import Grid, Scenario
from bench.errors import SiteError, UsageError
from bench.storage.run_folder import RunFolder
from bench.units import Size
from reports.live import server
from reports.live.snapshot import is_running, pulse_of

DEADLINE = 60.0
SMOKE = Path(__file__).parents[2] / "scenarios" / "smoke.yaml"
BENCH = (sys.executable, "-m", "bench")


def until(true: Callable[[], object]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        threading.Event().wait(0.05)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, RunFolder]]:
    """The port of a page of a run that a harness has open."""
    run = a_run(tmp_path_factory.mktemp("watch") / "run")
    store = RunFolder(run)
    store.open(QUICK, server.read_run(run).site, {})
    said: list[str] = []
    serving = threading.Thread(
        target=server.serve, args=(run,), kwargs={"host": "127.0.0.1", "port": 0, "say": said.append}
    )
    serving.start()
    until(lambda: said)
    yield int(said[0].split(":")[2].split("/")[0]), store
    store.close()
    serving.join(timeout=DEADLINE)
    assert not serving.is_alive()


def answer(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    connection.request(method, path, headers=headers)
    got = connection.getresponse()
    body = got.read()
    connection.close()
    return got.status, body


def test_the_page_shows_the_map_filling(standing: tuple[int, RunFolder]) -> None:
    """How many cells are done, and each one's rate with its interval."""
    port, _ = standing
    status, body = answer(port, "/pulse.json")
    pulse = json.loads(body)
    assert (status, pulse["running"], pulse["done"], pulse["of"]) == (200, True, 23, 24)
    assert pulse["maps"][0]["rows"][1][1][0]["claim"] == "59.9 k/s"
    assert b"<title>run: live</title>" in answer(port, "/")[1]


@pytest.mark.parametrize(
    "path", ["/run.json", "/../run.json", "/%2e%2e/%2e%2e/etc/passwd", "/logs/", "//etc/passwd", "/pulse.json/.."]
)
def test_nothing_but_the_page_is_served(standing: tuple[int, RunFolder], path: str) -> None:
    """No request names a file."""
    assert answer(standing[0], path) == (404, b"there is only /\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_can_only_be_read(standing: tuple[int, RunFolder], method: str) -> None:
    """Whatever else is asked is refused."""
    assert answer(standing[0], "/", method)[0] == 501


def test_a_foreign_name_is_refused(standing: tuple[int, RunFolder]) -> None:
    """A page elsewhere whose name leads here cannot read a run through a person's browser."""
    assert answer(standing[0], "/pulse.json", Host="evil.example")[0] == 403
    assert answer(standing[0], "/pulse.json", Host="localhost:80")[0] == 200


def test_looking_does_not_take_the_run_s_lock(tmp_path: Path) -> None:
    """A harness can open the folder however often somebody looks."""
    run = a_run(tmp_path / "run")
    assert not is_running(run)
    store = RunFolder(run)
    store.open(QUICK, server.read_run(run).site, {})
    assert is_running(run)
    store.close()


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """The page has no place for it but texts."""
    evil = "</title><script>alert(1)</script>"
    scenario = Scenario(name="evil", title=evil, systems=("a/b", "c/<script>"), grid=Grid((Size(100),)))
    with an_open_store(tmp_path / "run", scenario) as store:
        store.save_result(scenario.cells()[0], result_of(scenario.cells()[0], "failed", reason=evil))
        assert pulse_of(tmp_path / "run", running=True).maps[0].rows[0][1][0].claim == "failed"
    page = server.templates().get_template("watch.html").render(title=evil, name="run")
    assert page.count("<script>") == 1


def test_a_host_that_is_no_address_is_refused(tmp_path: Path) -> None:
    """In one line."""
    run = a_run(tmp_path / "run")
    with pytest.raises(UsageError, match="is no IP address"):
        server.serve(run, host="0.0.0.0.evil", port=0, say=print)
    with pytest.raises(SiteError, match="cannot be listened on"):
        server.serve(run, host="192.0.2.1", port=0, say=print)


def test_a_real_run_is_watched_to_its_end(tmp_path: Path) -> None:
    """Its rates are seen while it runs; the page ends with it, and leaves nothing in its folder."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    command = (*BENCH, "run", str(SMOKE), "--out", str(tmp_path), "--quiet")
    run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    until(lambda: list(tmp_path.glob("smoke-*/run.json")))
    (folder,) = tmp_path.glob("smoke-*")
    looking = subprocess.Popen((*BENCH, "watch", str(folder)), stdout=subprocess.PIPE, text=True)
    assert looking.stdout is not None
    port = int(looking.stdout.readline().split(":")[2].split("/")[0])
    seen: list[dict[str, object]] = []

    def figures() -> bool:
        seen.append(json.loads(answer(port, "/pulse.json")[1]))
        return bool(seen[-1]["figures"])

    until(figures)
    assert [name for name, _ in seen[-1]["figures"]] == ["offered", "processed", "backlog"]  # type: ignore[attr-defined]
    assert run.wait(DEADLINE) in (0, 4)  # 4: this machine was busy with other work, which is no matter here
    assert looking.wait(DEADLINE) == 0
    looking.stdout.close()
    assert not (folder / "status.json").exists()
