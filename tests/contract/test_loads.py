"""One suite for every installed load generator: it sends a spec as given, can be cancelled, reports its death."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from bench.errors import ProcessDiedError
from bench.model.cell import Cell
from bench.model.message_codec import read
from bench.model.message_filler import make_filler
from bench.model.message_header import ClockReference
from bench.plugins import registry
from bench.plugins.protocols import Endpoint
from bench.system.clock import epoch
from bench.workload.load_spec import LoadSpec

LOADS = pytest.mark.parametrize("name", registry.names("load_generators"))
DEADLINE = 100.0


@pytest.fixture
def files(env):
    """A folder that takes whatever is sent."""
    source = registry.make_source("files", {})
    yield source.open(Cell("python", "files", 100, 0.0), env)
    source.close()


@pytest.fixture
def opened(env, files):
    """Opens a load generator at the folder; it is closed afterwards."""
    loads = []

    def make(name):
        loads.append(registry.load_generator_plugin(name).open(files, env, 1))
        return loads[-1]

    yield make
    for load in loads:
        load.close()


def spec(run=1, rate=2000.0, seconds=0.5):
    return LoadSpec(run, rate, time.monotonic() + 0.05, seconds, message_bytes=100, cpu_seconds=0.0, entropy=0.5)


def progress_until(load, condition):
    """Return what a load generator reports until its last report fulfils a condition."""
    reports, deadline = [], time.monotonic() + DEADLINE
    while not (reports and condition(reports[-1])):
        assert time.monotonic() < deadline, "the load generator did not report it in time"
        reports += load.poll()
        time.sleep(0.005)
    return reports


@LOADS
def test_a_spec_is_sent_as_it_was_given(opened, files, name):
    """Every message is sent once, due when the schedule says, never before; the reported counts ascend to all of it."""
    load, given = opened(name), spec()
    load.start(given)
    reports = progress_until(load, lambda sent: sent.done)
    assert (reports[-1].accepted, reports[-1].confirmed, reports[-1].failed) == (1000, 1000, 0)
    assert [sent.accepted for sent in reports] == sorted(sent.accepted for sent in reports)
    heads = read([file.read_bytes() for file in sorted(Path(files.address).iterdir())], 100, make_filler(100, 0.5))
    assert heads.seq.tolist() == list(range(1000))
    assert np.allclose(heads.due, given.begin + given.schedule().due(0, 1000), atol=2e-6)
    assert (heads.sent >= heads.due - 2e-6).all()


@LOADS
def test_the_clock_of_another_machine_is_followed(opened, files, name):
    """Due times, reports and messages are by the clock of whoever gave the spec: here 100 s ahead of ours."""
    load, ours = opened(name), spec()
    given = replace(ours, begin=ours.begin + 100, clock=ClockReference("another boot", epoch() - 100))
    load.start(given)
    reports = progress_until(load, lambda sent: sent.done)
    assert reports[-1].confirmed == 1000
    assert all(abs(sent.at - given.begin) < DEADLINE for sent in reports)
    heads = read([file.read_bytes() for file in sorted(Path(files.address).iterdir())], 100, make_filler(100, 0.5))
    assert np.allclose(heads.due, given.begin + given.schedule().due(0, 1000), atol=2e-6)
    assert (heads.sent >= heads.due - 2e-6).all()


@LOADS
def test_specs_follow_each_other(opened, name):
    """Each is counted from its own begin."""
    load = opened(name)
    for run in (1, 2):
        load.start(spec(run))
        last = progress_until(load, lambda sent: sent.done)[-1]
        assert (last.run, last.confirmed) == (run, 1000)


@LOADS
def test_cancelling_ends_a_spec(opened, files, name):
    """Nothing is sent after that."""
    load = opened(name)
    load.start(spec(rate=100, seconds=600))
    progress_until(load, lambda sent: sent.accepted > 0)
    load.cancel()
    last = progress_until(load, lambda sent: sent.done)[-1]
    assert last.confirmed == last.accepted == len(list(Path(files.address).iterdir())) < 60_000


@LOADS
def test_closing_gives_up_a_spec(opened, name):
    """The next load generator sends its own spec only."""
    load = opened(name)
    load.start(spec(rate=100, seconds=600))
    progress_until(load, lambda sent: sent.accepted > 0)
    load.close()
    again = opened(name)
    again.start(spec(run=2))
    assert {sent.run for sent in progress_until(again, lambda sent: sent.done)} == {2}


def test_locust_that_was_killed_is_gone_and_replaced(opened, env):
    """Polling it raises ProcessDiedError; the next load generator gets a new one."""
    load = opened("locust")
    load.start(spec(rate=100, seconds=600))
    os.kill(locust(env).pid, signal.SIGKILL)
    with pytest.raises(ProcessDiedError):
        progress_until(load, lambda sent: sent.done)
    load.close()
    again = opened("locust")
    again.start(spec())
    assert progress_until(again, lambda sent: sent.done)[-1].confirmed == 1000


def test_cancelling_a_load_generator_that_is_gone_is_no_error(opened, env):
    """Polling it raises ProcessDiedError; a trial that it ends is not lost."""
    load = opened("locust")
    load.start(spec(rate=100, seconds=600))
    process = locust(env)
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + DEADLINE
    while process.alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    load.cancel()
    with pytest.raises(ProcessDiedError):
        progress_until(load, lambda sent: sent.done)


def test_locust_says_why_it_cannot_go_on(env, tmp_path):
    """The reason is in the error, not only in its log."""
    missing = Endpoint("files", str(tmp_path / "nowhere" / "complete"))
    with pytest.raises(ProcessDiedError, match="No such file"):
        registry.load_generator_plugin("locust").open(missing, env, 1)


def test_one_locust_serves_all_cells(opened, env):
    """It is kept in the run environment between cells."""
    opened("locust")
    first = locust(env).pid
    opened("locust").close()
    assert locust(env).pid == first


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_two_locust_workers_send_one_schedule(env, arrivals):
    """Each its own share, both at their due times; together they are what one would have sent."""
    endpoint = registry.make_source("files", {}).open(Cell("python", "files", 100, 0.0), env)
    load = registry.load_generator_plugin("locust").open(endpoint, env, 2)
    given = replace(spec(), workers=2, arrivals=arrivals, seed=5)
    load.start(given)
    last = progress_until(load, lambda sent: sent.done)[-1]
    load.close()
    whole = given.schedule().due(0, given.schedule().count(given.seconds))
    heads = read([file.read_bytes() for file in Path(endpoint.address).iterdir()], 100, make_filler(100, 0.5))
    assert last.confirmed == len(whole) == len(heads)
    assert last.by_worker == {0: (len(whole) + 1) // 2, 1: len(whole) // 2}
    assert np.allclose(np.sort(heads.due), given.begin + whole, atol=2e-6)
    for worker in (0, 1):
        assert np.allclose(np.sort(heads.due[heads.producer == worker]), given.begin + whole[worker::2], atol=2e-6)


def locust(env):
    """The Locust process."""
    return next(child for child in env.supervisor.children if child.role == "load")
