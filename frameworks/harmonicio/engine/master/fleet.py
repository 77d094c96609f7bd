"""The PEs that operators want: started on workers, started again when they end, and stopped."""

import json
import logging
import math
import os
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from frameworks.harmonicio.engine.errors import HarmonicError, RefusedError, UnreachableError
from frameworks.harmonicio.engine.http import base_url
from frameworks.harmonicio.engine.master.registry import RegisteredWorker, Registry
from frameworks.harmonicio.engine.master.restart_delay import RestartDelay
from frameworks.harmonicio.engine.tls import client_context
from frameworks.harmonicio.engine.wire.control_messages import check_names
from frameworks.harmonicio.engine.wire.literal import read_literal

logger = logging.getLogger(__name__)

START_TIMEOUT_S = 30.0
"""Time in which a started PE must have sent a heartbeat; otherwise it is started again."""
SURPLUS_TIMEOUT_S = 10.0
"""Time after which a PE that is one too many is ended: its operator may be about to do so."""
REQUEST_TIMEOUT_S = 15.0
_ID_CHARACTERS = 12
_MAX_NAME_CHARACTERS, _MAX_PES = 999, 10_000


class StreamSpec(Struct, frozen=True, kw_only=True):
    """The PEs that a stream should have."""

    c_name: str
    num: int = 1
    image: str = ""
    """what a PE runs; the stream's name when left out"""
    cpu_share: float | None = None
    memory_bytes: int | None = None
    volatile: bool = False
    settings: dict[str, Any] = {}


class Fleet:
    """Keeps the desired number of PEs of each stream running; remembers it in a file of the state folder.

    Args:
        registry: of the master.
        session: for requests to workers; closed by its owner.
        token: of workers.
        state: folder of the file; None to remember nothing.
        tls: folder of certificates; plain HTTP when None.
        ends_surplus: whether a PE more than the desired ones is ended; not where a resource manager starts others.
    """

    def __init__(  # noqa: PLR0913  everything that it works with; there is one call
        self,
        registry: Registry,
        session: aiohttp.ClientSession,
        token: str,
        *,
        state: str | None,
        tls: str | None = None,
        ends_surplus: bool = True,
    ) -> None:
        self._registry, self._session, self._token, self._tls = registry, session, token, tls
        self._file = Path(state) / "wanted.json" if state is not None else None
        self.desired: dict[str, StreamSpec] = self._load()
        self.starting: dict[str, tuple[str, str, float]] = {}
        """PEs that were started and have sent no heartbeat yet: stream, worker, deadline"""
        self.problems: dict[str, str] = {}
        """why PEs of a stream could not be started"""
        self._restarts = RestartDelay()
        self._ends_surplus = ends_surplus
        self._surplus_since: dict[str, float] = {}

    def submit(self, spec: StreamSpec) -> None:
        """Set the desired PEs of a stream."""
        self.desired[spec.c_name] = spec
        self._restarts.forget(spec.c_name)
        self._save()

    def forget(self, c_name: str) -> None:
        """Want no PEs of a stream any more."""
        self.desired.pop(c_name, None)
        self._restarts.forget(c_name)
        self.problems.pop(c_name, None)
        self._save()

    async def reconcile(self, now: float) -> None:
        """Start missing PEs, and end those that are too many for long.

        Those that cannot be started are in `problems`, and tried again at the next call; those that end soon after
        their start are started again after a delay.
        """
        for pe_id, (_, _, deadline) in list(self.starting.items()):
            if pe_id in self._registry.pes or pe_id in self._registry.ended or now > deadline:
                del self.starting[pe_id]
        for c_name in self._restarts.record_ends(self._registry.ended, now):
            logger.warning("%s: %s", c_name, self._restarts.problem(c_name, now))
        self._restarts.record_running(self._registry.pes, now)
        for spec in list(self.desired.values()):
            if self._ends_surplus:
                await self._end_surplus(spec, now)
            if self._restarts.may_start(spec.c_name, now):
                await self._start_missing(spec, now)

    async def _start_missing(self, spec: StreamSpec, now: float) -> None:
        present = sum(pe.c_name == spec.c_name and pe.state != "draining" for pe in self._registry.pes.values())
        present += sum(c_name == spec.c_name for c_name, _, _ in self.starting.values())
        for _ in range(spec.num - present):
            if self.desired.get(spec.c_name) is not spec:  # withdrawn or changed while a worker was asked
                break
            worker = self._least_loaded()
            if worker is None:
                self.problems[spec.c_name] = "no worker has reported"
                break
            try:
                pe_id = await self.start(spec, worker, now)
                self.problems.pop(spec.c_name, None)
                if spec.c_name not in self.desired and pe_id in self.starting:
                    await self.stop(pe_id)
            except HarmonicError as error:
                self.problems[spec.c_name] = str(error)
                logger.warning("%s could not be started: %s", spec.c_name, error)
                break

    def problem(self, c_name: str, now: float) -> str:
        """Return why PEs of a stream are missing; an empty text where nothing is known to be wrong."""
        return self.problems.get(c_name) or self._restarts.problem(c_name, now)

    def started_for(self, pe_id: str) -> str:
        """Return the stream for which this fleet has started a PE; an empty text for others, or once told to end."""
        return self._restarts.stream_of(pe_id)

    def postpone(self, seconds: float) -> None:
        """Wait longer for PEs that were started: for so long the master itself did not run."""
        self.starting = {
            pe_id: (c_name, worker, until + seconds) for pe_id, (c_name, worker, until) in self.starting.items()
        }

    async def _end_surplus(self, spec: StreamSpec, now: float) -> None:
        """End the newest PE of a stream that has had too many for a while, such as one whose heartbeats had stopped.

        One after the other: it processes what it has received.
        """
        pes = [pe for pe in self._registry.pes.values() if pe.c_name == spec.c_name]
        if len(pes) <= spec.num or any(pe.state == "draining" for pe in pes):
            self._surplus_since.pop(spec.c_name, None)
        elif now > self._surplus_since.setdefault(spec.c_name, now) + SURPLUS_TIMEOUT_S:
            del self._surplus_since[spec.c_name]
            logger.warning("%s has %d PEs, not %d: the newest is ended", spec.c_name, len(pes), spec.num)
            try:
                await self.stop(pes[-1].address.id)
            except HarmonicError as error:
                logger.warning("it could not be ended: %s", error)

    async def start(self, spec: StreamSpec, worker: RegisteredWorker, now: float) -> str:
        """Start one PE on a worker.

        Args:
            spec: of its stream; `num` is ignored.
            worker: where to start it.
            now: monotonic seconds.

        Returns:
            The id of the PE.

        Raises:
            RefusedError: the worker refuses.
            UnreachableError: the worker does not answer.
        """
        body: dict[str, Any] = {"c_name": spec.c_name, "num": 1}
        if spec.image:
            body["image"] = spec.image
        if spec.cpu_share is not None:
            body["cpu_share"] = spec.cpu_share
        if spec.memory_bytes is not None:
            body["memory_bytes"] = spec.memory_bytes
        if spec.volatile:
            body["volatile"] = 1
        if spec.settings:
            body["settings"] = spec.settings
        pe_id = (await self._request(worker, "POST", "create", body=body)).strip()
        if len(pe_id) == _ID_CHARACTERS:  # a legacy worker answers Okay: its PE registers itself
            self.starting[pe_id] = (spec.c_name, f"{worker.node_addr}:{worker.node_port}", now + START_TIMEOUT_S)
            # a volatile PE may end at any time
            self._restarts.record_start(pe_id, spec.c_name, -math.inf if spec.volatile else now)
        return pe_id

    async def stop(self, pe_id: str) -> None:
        """Drain and end a PE through its worker; raises RefusedError or UnreachableError."""
        pe = self._registry.pes.get(pe_id)
        name = pe.worker if pe is not None else self.starting.get(pe_id, ("", "", 0.0))[1]
        worker = self._registry.workers.get(name)
        if worker is None:
            raise UnreachableError(f"the worker of {pe_id} is not known; is {pe_id} one of the list?")
        await self._request(worker, "DELETE", "remove", short_id=pe_id)
        self.starting.pop(pe_id, None)
        self._restarts.record_stop(pe_id)

    def _least_loaded(self) -> RegisteredWorker | None:
        """Return the worker with the fewest PEs."""
        counts = dict.fromkeys(self._registry.workers, 0)
        running = [pe.worker for pe in self._registry.pes.values()]
        for name in [*running, *(worker for _, worker, _ in self.starting.values())]:
            if name in counts:
                counts[name] += 1
        best = min(counts, key=lambda name: counts[name], default=None)
        return None if best is None else self._registry.workers[best]

    async def _request(
        self, worker: RegisteredWorker, verb: str, command: str, *, body: object = None, **query: str
    ) -> str:
        url = f"{base_url(worker.node_addr, worker.node_port, tls=self._tls is not None)}/docker"
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            async with self._session.request(
                verb, url, params={"token": "None", "command": command, **query}, headers=headers,
                data=json.dumps(body) if body is not None else None,
                ssl=client_context(self._tls) if self._tls is not None else True,
            ) as answer:  # fmt: skip
                text = await answer.text()
                if answer.status != 200:
                    raise RefusedError(f"worker {worker.node_name} said {answer.status}: {text[:500]}")
                return text
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = str(error) or type(error).__name__  # that of a timeout is empty
            raise UnreachableError(f"worker {worker.node_name} at {url} does not answer: {reason}") from None

    def _load(self) -> dict[str, StreamSpec]:
        if self._file is None or not self._file.exists():
            return {}
        try:
            specs = msgspec.json.decode(self._file.read_bytes(), type=list[StreamSpec])
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("%s cannot be read, nothing is wanted: %s", self._file, error)
            return {}
        return {spec.c_name: spec for spec in specs}

    def _save(self) -> None:
        if self._file is not None:
            fresh = self._file.with_suffix(".new")
            private = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # settings of PEs may be secret
            with os.fdopen(private, "wb") as file:
                file.write(msgspec.json.encode(list(self.desired.values())))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._file)


def read_stream_spec(text: bytes) -> StreamSpec:
    """Return the spec in the body of a request; raises RefusedError when it is not valid."""
    try:
        spec = msgspec.convert(read_literal(text), StreamSpec, strict=False)
        check_names(spec.c_name, spec.image)
    except (HarmonicError, ValueError) as error:  # a ValidationError is a ValueError
        raise RefusedError(str(error)) from None
    if not 0 < len(spec.c_name) <= _MAX_NAME_CHARACTERS or not 0 <= spec.num <= _MAX_PES:
        raise RefusedError("c_name has 1 to 999 characters, num is 0 to 10000")
    return spec
