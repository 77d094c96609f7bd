"""What was asked to run, and getting it to run: PEs are started on workers, started again when they die, and stopped."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from frameworks.harmonicio.engine.errors import HarmonicError, Refused, Unreachable
from frameworks.harmonicio.engine.master.registry import Registry, Worker
from frameworks.harmonicio.engine.tls import client_context
from frameworks.harmonicio.engine.wire.literal import read_literal

logger = logging.getLogger(__name__)

START_SECONDS = 30.0
"""In which a started PE must have been heard of; else it is started again."""
_TIMEOUT_S = aiohttp.ClientTimeout(total=15)


class Wanted(Struct, frozen=True, kw_only=True):
    """So many PEs of a stream."""

    c_name: str
    num: int = 1
    image: str = ""
    """what is run; the stream's name when left out"""
    cpu_share: float | None = None
    memory_bytes: int | None = None
    volatile: bool = False
    settings: dict[str, Any] = {}


class Fleet:
    """Keeps as many PEs as are wanted; remembers them in a file of the state folder."""

    def __init__(self, registry: Registry, token: str, state: Path | None, *, tls: str | None = None) -> None:
        self._registry, self._token, self._tls = registry, token, tls
        self._file = state / "wanted.json" if state is not None else None
        self.wanted: dict[str, Wanted] = self._remembered()
        self.starting: dict[str, tuple[str, str, float]] = {}
        """PEs that were started and not heard of yet: stream, worker, deadline"""
        self.problems: dict[str, str] = {}
        self._session: aiohttp.ClientSession | None = None

    def submit(self, wanted: Wanted) -> None:
        """Want so many PEs from now on."""
        self.wanted[wanted.c_name] = wanted
        self._remember()

    def forget(self, c_name: str) -> bool:
        """Want none any more; whether any were wanted."""
        known = self.wanted.pop(c_name, None) is not None
        self.problems.pop(c_name, None)
        self._remember()
        return known

    async def close(self) -> None:
        """Close the connections to workers."""
        if self._session is not None:
            await self._session.close()

    async def reconcile(self, now: float) -> None:
        """Start what is missing; what cannot be started is said in `problems` and tried again."""
        for pe_id, (_, _, deadline) in list(self.starting.items()):
            if pe_id in self._registry.pes or pe_id in self._registry.gone or now > deadline:
                del self.starting[pe_id]
        for wanted in list(self.wanted.values()):
            there = sum(pe.c_name == wanted.c_name and pe.state != "draining" for pe in self._registry.pes.values())
            there += sum(c_name == wanted.c_name for c_name, _, _ in self.starting.values())
            for _ in range(wanted.num - there):
                worker = self._least_loaded()
                if worker is None:
                    self.problems[wanted.c_name] = "no worker has reported"
                    break
                try:
                    await self.start(wanted, worker, now)
                    self.problems.pop(wanted.c_name, None)
                except HarmonicError as problem:
                    self.problems[wanted.c_name] = str(problem)
                    logger.warning("%s could not be started: %s", wanted.c_name, problem)
                    break

    async def start(self, wanted: Wanted, worker: Worker, now: float) -> str:
        """Start one PE on a worker; its id. Raises Refused or Unreachable."""
        body: dict[str, Any] = {"c_name": wanted.c_name, "num": 1}
        if wanted.image:
            body["image"] = wanted.image
        if wanted.cpu_share is not None:
            body["cpu_share"] = wanted.cpu_share
        if wanted.memory_bytes is not None:
            body["memory_bytes"] = wanted.memory_bytes
        if wanted.volatile:
            body["volatile"] = 1
        if wanted.settings:
            body["settings"] = wanted.settings
        answer = await self._ask(worker, "POST", "create", body=body)
        pe_id = answer.strip()
        if len(pe_id) == 12:  # an old worker says Okay: its PE will speak for itself
            self.starting[pe_id] = (wanted.c_name, f"{worker.node_addr}:{worker.node_port}", now + START_SECONDS)
        return pe_id

    async def stop(self, pe_id: str) -> None:
        """Have the worker of a PE drain and end it; raises Refused or Unreachable."""
        pe = self._registry.pes.get(pe_id)
        name = pe.worker if pe is not None else self.starting.get(pe_id, ("", "", 0.0))[1]
        worker = self._registry.workers.get(name)
        if worker is None:
            raise Unreachable(f"the worker of {pe_id} is not known; is {pe_id} one of the list?")
        await self._ask(worker, "DELETE", "remove", short_id=pe_id)
        self.starting.pop(pe_id, None)

    def _least_loaded(self) -> Worker | None:
        """The worker with the fewest PEs."""
        counts = dict.fromkeys(self._registry.workers, 0)
        for name in [
            *(pe.worker for pe in self._registry.pes.values()),
            *(where for _, where, _ in self.starting.values()),
        ]:
            if name in counts:
                counts[name] += 1
        best = min(counts, key=lambda name: counts[name], default=None)
        return None if best is None else self._registry.workers[best]

    async def _ask(self, worker: Worker, verb: str, command: str, *, body: object = None, **query: str) -> str:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT_S)
        host = f"[{worker.node_addr}]" if ":" in worker.node_addr else worker.node_addr
        where = f"{'http' if self._tls is None else 'https'}://{host}:{worker.node_port}/docker"
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            async with self._session.request(
                verb, where, params={"token": "None", "command": command, **query}, headers=headers,
                data=json.dumps(body) if body is not None else None,
                ssl=client_context(self._tls) if self._tls is not None else True,
            ) as answer:  # fmt: skip
                text = await answer.text()
                if answer.status != 200:
                    raise Refused(f"worker {worker.node_name} said {answer.status}: {text[:500]}")
                return text
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise Unreachable(f"worker {worker.node_name} at {where} does not answer: {problem}") from None

    def _remembered(self) -> dict[str, Wanted]:
        if self._file is None or not self._file.exists():
            return {}
        try:
            found = msgspec.json.decode(self._file.read_bytes(), type=list[Wanted])
        except (OSError, msgspec.DecodeError) as problem:
            logger.warning("%s cannot be read, nothing is wanted: %s", self._file, problem)
            return {}
        return {wanted.c_name: wanted for wanted in found}

    def _remember(self) -> None:
        if self._file is not None:
            fresh = self._file.with_suffix(".new")
            with fresh.open("wb") as file:
                file.write(msgspec.json.encode(list(self.wanted.values())))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._file)


def read_wanted(text: bytes) -> Wanted:
    """What somebody wants; raises Refused when it cannot be understood."""
    try:
        wanted = msgspec.convert(read_literal(text), Wanted, strict=False)
    except (HarmonicError, msgspec.ValidationError) as problem:
        raise Refused(str(problem)) from None
    if not 0 < len(wanted.c_name) <= 999 or not 0 <= wanted.num <= 10_000:
        raise Refused("c_name has 1 to 999 characters, num is 0 to 10000")
    return wanted
