"""Reads a HarmonicIO stream: a PE within this process, whose function hands the messages on.

A message counts as processed for its connector once it is in this reader's pipe, which is bounded: a slow reader
pushes back.
"""

import contextlib
import socket
import threading
from collections.abc import Sequence
from secrets import token_hex

from bench.config.address import Address
from bench.errors import PluginError
from bench.plugins.plugin import ConsumerPlugin
from bench.plugins.protocols import Endpoint
from bench.services.ports import LOOPBACK
from bench.system.pipe import Pipe
from frameworks.harmonicio.engine.config import PeConfig
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.operator_client import OperatorClient
from frameworks.harmonicio.engine.pe.engine import Engine, EngineOptions
from frameworks.harmonicio.engine.pe.function import Batch, UserFunction, of_batch
from frameworks.harmonicio.engine.pe.registration import Registration

READY_TIMEOUT_S = 20.0
_MAX_MESSAGES, _MAX_BYTES = 20_000, 64 * 10**6
_PAUSE_S = 0.002
_TOKEN_BYTES = 6


@of_batch
class PipeFunction:
    """A PE's function that puts messages into a pipe; it waits while that is full, until the reader is closed."""

    def __init__(self, settings: "dict[str, object]") -> None:
        self._name, self.most = str(settings["pipe"]), 1000
        self.closed = threading.Event()
        _OPEN[self._name] = self

    def __call__(self, batch: Batch) -> None:
        """Put a batch into the pipe."""
        pipe, messages = _PIPES[self._name], [bytes(message) for message in batch]
        while messages and not self.closed.is_set():
            messages = messages[pipe.put(messages) :]
            if messages:
                self.closed.wait(_PAUSE_S)


_PIPES: dict[str, Pipe] = {}
_OPEN: dict[str, PipeFunction] = {}


class StreamConsumer:
    """One PE of the stream; several members share it by their credit."""

    def __init__(self, endpoint: Endpoint, member: int, members: int) -> None:  # noqa: ARG002  PEs share a stream by themselves
        if endpoint.client["elsewhere"]:
            raise PluginError(
                "stream", "open", "a PE of this process is on loopback, where a master of the site does not see it"
            )
        self._id, self._closed = token_hex(_TOKEN_BYTES), False
        self._pipe = _PIPES[self._id] = Pipe(_MAX_MESSAGES, _MAX_BYTES)
        listener = socket.create_server((LOOPBACK, 0))
        port, control = listener.getsockname()[1], int(endpoint.client["control"])
        host = Address.parse(endpoint.address).host
        config = PeConfig(
            c_name=endpoint.name, spec="consumers.harmonicio:PipeFunction",
            host=LOOPBACK, node_addr=LOOPBACK, port=port,
            master_host=host, master_port=control, id=self._id, worker="", settings={"pipe": self._id},
        )  # fmt: skip
        function = UserFunction(config.spec, config.settings)
        options = EngineOptions(c_name=endpoint.name, max_message_bytes=config.message_bytes)
        self._engine = Engine(listener, function, options)
        self._registration = Registration(config, self._engine)
        self._thread = threading.Thread(target=self._engine.run, daemon=True, name="pe")
        self._thread.start()
        self._registration.start()
        try:
            self._wait_until_known(OperatorClient(host, control))
        except PluginError:
            self.close()
            raise

    def take(self, max_messages: int, timeout: float) -> Sequence[bytes]:
        """Return up to `max_messages` messages of one part, as soon as there are any; none after `timeout` seconds."""
        return self._pipe.take(max_messages, timeout)

    def close(self) -> None:
        """Disconnect."""
        if self._closed:
            return
        self._closed = True
        _OPEN.pop(self._id).closed.set()
        self._engine.stop()
        self._thread.join(timeout=READY_TIMEOUT_S)
        self._registration.finish()
        _PIPES.pop(self._id, None)

    def _wait_until_known(self, operator: OperatorClient) -> None:
        pause = threading.Event()
        for _ in range(int(READY_TIMEOUT_S / 0.05)):
            with contextlib.suppress(HarmonicError):
                if any(pe["id"] == self._id for pe in operator.status()["pes"]):
                    return
            pause.wait(0.05)
        raise PluginError("stream", "open", f"the master did not hear of PE {self._id} within {READY_TIMEOUT_S:g} s")


plugin = ConsumerPlugin(open=StreamConsumer)
