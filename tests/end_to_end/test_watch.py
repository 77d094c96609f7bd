"""A running benchmark can be watched by reading its folder alone."""

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

from sample_runs import QUICK, make_result, make_run, open_run_folder

from bench.config.scenario import Grid, Scenario
from bench.errors import SiteError, UsageError
from bench.model.measurement import PlannedTrial
from bench.runner.live_status import live_status
from bench.runner.progress import CellStarted, TrialStarted
from bench.storage.folder_lock import is_running
from bench.storage.records import VisitRecord
from bench.storage.run_folder import RunFolder
from bench.units import Size
from reports.live import server
from reports.live.snapshot import take_snapshot

DEADLINE_S = 60.0
SMOKE = Path(__file__).parents[2] / "scenarios" / "smoke.yaml"
BENCH = (sys.executable, "-m", "bench")


def until(is_true: Callable[[], object]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + DEADLINE_S
    while not is_true():
        assert time.monotonic() < end, "it did not come true in time"
        threading.Event().wait(0.05)


@pytest.fixture(scope="module")
def live_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, RunFolder]]:
    """Yield the port of the live page, and the run folder that a harness has open."""
    run = make_run(tmp_path_factory.mktemp("watch") / "run")
    store = RunFolder(run)
    store.open(QUICK, server.read_run(run).site, {})
    printed: list[str] = []
    serving = threading.Thread(
        target=server.serve, args=(run,), kwargs={"host": "127.0.0.1", "port": 0, "say": printed.append}
    )
    serving.start()
    until(lambda: printed)
    yield int(printed[0].split(":")[2].split("/")[0]), store
    store.close()
    serving.join(timeout=DEADLINE_S)
    assert not serving.is_alive()


def request(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


def test_the_page_shows_the_map_filling(live_page: tuple[int, RunFolder]) -> None:
    """It has the number of finished cells, and the rate and interval of each."""
    port, _ = live_page
    status, body = request(port, "/snapshot.json")
    snapshot = json.loads(body)
    assert (status, snapshot["running"], snapshot["done"], snapshot["of"]) == (200, True, 23, 24)
    assert snapshot["maps"][0]["rows"][1][1][0]["claim"] == "59.9 k/s"
    assert b"<title>run: live</title>" in request(port, "/")[1]


def test_the_page_counts_down_the_total(tmp_path: Path) -> None:
    """It tells the visit of the cell under way, and how often each cell was visited."""
    cell = QUICK.cells()[0]
    with open_run_folder(tmp_path / "run", QUICK) as store, live_status(store.folder) as status:
        for trials in (1, 2):
            store.add_visit(VisitRecord(2, cell, 20.0, 10.0, 12.0, trials, 9.0))
        store.save_result(cell, make_result(cell))
        status(CellStarted(cell, 1, 24, visit=3, done=1, left_s=150.0, total_s=600.0))
        status(TrialStarted(PlannedTrial(7, 100.0, 1.0, 5.0, "search")))
        snapshot = take_snapshot(store.folder, running=True)
    assert 0.75 <= snapshot.share < 0.9
    assert snapshot.left.endswith("of 10 min left")
    assert snapshot.activity.startswith("1 of 24: spark/tcp, 100 B, 0 ms, visit 3")
    drawn = snapshot.maps[0].rows[-1][1][0]
    assert drawn is not None
    assert (drawn.visits, drawn.current, drawn.status) == (2, True, "measured")


@pytest.mark.parametrize(
    "path", ["/run.json", "/../run.json", "/%2e%2e/%2e%2e/etc/passwd", "/logs/", "//etc/passwd", "/snapshot.json/.."]
)
def test_nothing_but_the_page_is_served(live_page: tuple[int, RunFolder], path: str) -> None:
    """No request names a file."""
    assert request(live_page[0], path) == (404, b"there is only /\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_can_only_be_read(live_page: tuple[int, RunFolder], method: str) -> None:
    """Other methods are refused."""
    assert request(live_page[0], "/", method)[0] == 501


def test_a_foreign_name_is_refused(live_page: tuple[int, RunFolder]) -> None:
    """A page of another host whose name resolves to this machine cannot read a run through the user's browser."""
    assert request(live_page[0], "/snapshot.json", Host="evil.example")[0] == 403
    assert request(live_page[0], "/snapshot.json", Host="localhost:80")[0] == 200


def test_watching_does_not_take_the_lock_of_the_run(tmp_path: Path) -> None:
    """A harness can open the folder while others watch."""
    run = make_run(tmp_path / "run")
    assert not is_running(run)
    store = RunFolder(run)
    store.open(QUICK, server.read_run(run).site, {})
    assert is_running(run)
    store.close()


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """The page inserts it only as text."""
    evil = "</title><script>alert(1)</script>"
    scenario = Scenario(name="evil", title=evil, systems=("a/b", "c/<script>"), grid=Grid((Size(100),)))
    with open_run_folder(tmp_path / "run", scenario) as store:
        store.save_result(scenario.cells()[0], make_result(scenario.cells()[0], "failed", reason=evil))
        assert take_snapshot(tmp_path / "run", running=True).maps[0].rows[0][1][0].claim == "failed"
    page = server.load_templates().get_template("watch.html").render(title=evil, name="run")
    assert page.count("<script>") == 1


def test_a_host_that_is_no_address_is_refused(tmp_path: Path) -> None:
    """The error says what is wrong with the address."""
    run = make_run(tmp_path / "run")
    with pytest.raises(UsageError, match="is no IP address"):
        server.serve(run, host="0.0.0.0.evil", port=0, say=print)
    with pytest.raises(SiteError, match="cannot be listened on"):
        server.serve(run, host="192.0.2.1", port=0, say=print)


def test_a_real_run_is_watched_to_its_end(tmp_path: Path) -> None:
    """Its rates are shown while it runs; the page ends with it, and leaves nothing in its folder."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    command = (*BENCH, "run", str(SMOKE), "--set", "grid.message_size=100B", "--out", str(tmp_path), "--quiet")
    run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    until(lambda: list(tmp_path.glob("smoke-*/run.json")))
    (folder,) = tmp_path.glob("smoke-*")
    watching = subprocess.Popen((*BENCH, "watch", str(folder)), stdout=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    port = int(watching.stdout.readline().split(":")[2].split("/")[0])
    snapshots: list[dict[str, object]] = []

    def figures() -> bool:
        snapshots.append(json.loads(request(port, "/snapshot.json")[1]))
        return bool(snapshots[-1]["figures"])

    until(figures)
    assert [name for name, _ in snapshots[-1]["figures"]] == ["offered", "processed", "backlog"]  # type: ignore[attr-defined]
    assert run.wait(DEADLINE_S) in (0, 4)  # 4: other work on this machine, which does not matter here
    assert watching.wait(DEADLINE_S) == 0
    watching.stdout.close()
    assert not (folder / "status.json").exists()
