"""The master keeps as many PEs as are wanted: none that nobody wants, none too many for long."""

import asyncio
import stat
import time

import aiohttp
import pytest
from aiohttp import web

from frameworks.harmonicio.engine.master.coordinator import Coordinator
from frameworks.harmonicio.engine.master.fleet import SURPLUS_TIMEOUT_S, Fleet, StreamSpec
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
