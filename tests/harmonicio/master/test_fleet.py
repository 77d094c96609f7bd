"""The master keeps as many PEs as are wanted: none that nobody wants, none too many for long."""

import asyncio
import re
import socket
import stat
import time

import aiohttp
import pytest
from aiohttp import web

from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.errors import UnreachableError
from frameworks.harmonicio.engine.master.coordinator import Coordinator
from frameworks.harmonicio.engine.master.fleet import SURPLUS_TIMEOUT_S, Fleet, StreamSpec
from frameworks.harmonicio.engine.master.irm_loop import IrmLoop
from frameworks.harmonicio.engine.master.queue import MessageQueue, QueueLimits
from frameworks.harmonicio.engine.master.registry import RegisteredPe, RegisteredWorker, Registry
from frameworks.harmonicio.engine.wire.control_messages import NodeAddress

SPEC = StreamSpec(c_name="s", num=8, image="python:x:y")


class SlowWorker:
    """Answers the master's requests to start and end PEs, each start after 50 ms."""

    def __init__(self):
        self.pes, self.started = [], 0
        self.app = web.Application()
        self.app.add_routes([web.post("/docker", self._create), web.delete("/docker", self._remove)])

    async def _create(self, _):
        await asyncio.sleep(0.05)
        self.started += 1
        self.pes.append(f"{self.started:012d}")
        return web.Response(text=self.pes[-1])

    async def _remove(self, request):
        self.pes.remove(request.query["short_id"])
        return web.Response(text="Okay")


def with_worker(check, state=None):
    """Run a coroutine function with a fleet of one worker, and the worker."""

    async def run():
        worker, registry = SlowWorker(), Registry()
        runner = web.AppRunner(worker.app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            worker.port = runner.addresses[0][1]
            registry.record_report(RegisteredWorker("127.0.0.1", runner.addresses[0][1], "w", 0.0), time.monotonic())
            async with aiohttp.ClientSession() as session:
                await check(Fleet(registry, session, "", state=state), registry, worker)
        finally:
            await runner.cleanup()

    asyncio.run(run())


def heard(registry, count, now, state="running"):
    """Record the heartbeats of so many PEs."""
    for number in range(1, count + 1):
        address = NodeAddress(f"{number:012d}", "127.0.0.1", 9000 + number)
        (name,) = registry.workers
        registry.record_heartbeat(RegisteredPe(address, "s", name, now, state), now)


def test_a_stream_that_is_withdrawn_while_its_pes_start_leaves_none():
    """The one whose start was under way is ended, and no other is started."""

    async def check(fleet, registry, worker):
        coordinator = Coordinator(
            registry, MessageQueue(QueueLimits(), None), fleet, None, on_pes_changed=lambda _: None
        )
        fleet.submit(SPEC)
        starting = asyncio.create_task(fleet.reconcile(time.monotonic()))
        while worker.started < 3:
            await asyncio.sleep(0.01)
        await coordinator.withdraw("s", purge=True)
        await starting
        await fleet.reconcile(time.monotonic())
        assert worker.pes == []
        assert worker.started < SPEC.num

    with_worker(check)


@pytest.mark.parametrize("state", ["running", "draining"])
def test_a_pe_too_many_is_ended_after_a_while(state):
    """Such as one whose heartbeats had stopped; while another one drains, that one is waited for."""

    async def check(fleet, registry, worker):
        fleet.submit(SPEC)
        worker.pes = [f"{number:012d}" for number in range(1, 10)]
        heard(registry, 9, 0.0, state)
        fleet.submit(StreamSpec(c_name="s", num=9 if state == "running" else 0))
        await fleet.reconcile(0.0)
        fleet.submit(StreamSpec(c_name="s", num=8 if state == "running" else 0))
        for now, left in ((1.0, 9), (SURPLUS_TIMEOUT_S, 9), (1.1 + SURPLUS_TIMEOUT_S, 8), (2 + SURPLUS_TIMEOUT_S, 8)):
            await fleet.reconcile(now)
            assert len(worker.pes) == (left if state == "running" else 9)
            heard(registry, len(worker.pes), now, state)
            registry.pes = {pe_id: pe for pe_id, pe in registry.pes.items() if pe_id in worker.pes}

    with_worker(check)


def test_nothing_expires_for_a_pause_of_the_master():
    """What was said meanwhile waits in its sockets."""

    async def check(fleet, registry, worker):
        fleet.submit(SPEC)
        heard(registry, 7, 100.0)
        registry.lease("s", 1, 100.0)
        fleet.starting["0" * 12] = ("s", "w", 101.0)
        (registered,) = registry.workers.values()
        registered.last_report = 100.0
        registry.postpone(60.0)
        fleet.postpone(60.0)
        assert registry.expire(160.5) == ([], [])
        assert registry.leases
        await fleet.reconcile(160.5)
        assert worker.started == 0

    with_worker(check)


def test_what_is_wanted_is_readable_by_its_owner_only(tmp_path):
    """Settings of PEs may be secret."""

    async def check(fleet, *_):
        fleet.submit(SPEC)

    with_worker(check, state=str(tmp_path))
    assert stat.S_IMODE((tmp_path / "wanted.json").stat().st_mode) == 0o600


def coordinate(fleet, registry, queue=None):
    """Return a coordinator without a resource manager."""
    queue = queue or MessageQueue(QueueLimits(), None)
    return Coordinator(registry, queue, fleet, None, on_pes_changed=lambda _: None)


@pytest.mark.parametrize("answers", [False, True], ids=["refused", "silent"])
def test_a_purge_is_done_although_a_worker_does_not_answer(answers):
    """The error of one line says how many PEs go on, and why."""

    async def run():
        registry, queue = Registry(), MessageQueue(QueueLimits(), None)
        queue.add_message("s", b"x")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            if not answers:
                listener.close()
            registry.record_report(RegisteredWorker("127.0.0.1", port, "w", 0.0), 0.0)
            heard(registry, 2, 0.0)
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.2)) as session:
                fleet = Fleet(registry, session, "", state=None)
                with pytest.raises(UnreachableError) as caught:
                    await coordinate(fleet, registry, queue).withdraw("s", purge=True)
        assert re.fullmatch(r"2 of 2 PEs were not told to end: .*: \w.*; 1 messages were deleted", str(caught.value))
        assert queue.length("s") == 0

    asyncio.run(run())


def test_a_pe_that_was_silent_when_its_stream_was_withdrawn_is_ended():
    """It gets no messages meanwhile; a PE that others have started goes on."""

    async def check(fleet, registry, worker):
        coordinator, now = coordinate(fleet, registry), time.monotonic()
        fleet.submit(StreamSpec(c_name="s", image="python:x:y"))
        await fleet.reconcile(now)
        await coordinator.withdraw("nothing", purge=False)
        (pe_id,) = worker.pes
        fleet.starting.clear()  # as after its first heartbeat
        pe = RegisteredPe(NodeAddress(pe_id, "127.0.0.1", 9000), "s", "w", now)
        assert coordinator.record_heartbeat(pe)
        registry.expire(time.monotonic() + 60)
        await coordinator.withdraw("s", purge=False)
        again = RegisteredPe(NodeAddress(pe_id, "127.0.0.1", 9000), "s", "w", now)
        assert (coordinator.record_heartbeat(again), registry.addresses("s")) == (False, [])
        assert coordinator.record_heartbeat(RegisteredPe(NodeAddress("other", "127.0.0.1", 9001), "s", "w", now))

    with_worker(check)


def test_pes_that_end_soon_are_started_again_after_a_delay():
    """It is shown as the problem of the stream."""

    async def check(fleet, registry, worker):
        fleet.submit(StreamSpec(c_name="s", image="python:x:y"))
        for now, started in ((0.0, 1), (1.0, 1), (1.9, 1), (2.1, 2), (3.0, 2), (4.9, 2), (5.1, 3)):
            registry.record_report(RegisteredWorker("127.0.0.1", worker.port, "w", 0.0), now)
            await fleet.reconcile(now)
            assert worker.started == started
            registry.record_end(worker.pes[-1], now)
        assert fleet.problem("s", 3.0).startswith("its PEs end soon after their start, 2 in a row")

    with_worker(check)


def test_a_withdrawn_stream_is_forgotten_by_the_resource_manager():
    """Its queue starts no PE any more."""

    async def check(fleet, registry, _):
        queue = MessageQueue(QueueLimits(), None)
        irm = IrmLoop(MasterConfig(irm="on"), registry, queue, fleet)
        coordinator = Coordinator(registry, queue, fleet, irm, on_pes_changed=lambda _: None)
        coordinator.request_containers(SPEC)
        assert coordinator.was_requested("s")
        await coordinator.withdraw("s", purge=False)
        assert (coordinator.was_requested("s"), irm.view()["waiting"]) == (False, 0)

    with_worker(check)
