"""The process of a PE, as a worker starts it: what it is told is in its environment; it ends when its worker does.

Exit codes: 0 drained, 1 the environment or the function is not as it should be, 2 no socket, 4 idle for too long.
"""

import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading

from frameworks.harmonicio.engine.config import PeConfig, read_pe_config
from frameworks.harmonicio.engine.errors import ConfigError
from frameworks.harmonicio.engine.logs import log_to_stderr
from frameworks.harmonicio.engine.pe.engine import Engine
from frameworks.harmonicio.engine.pe.function import Function
from frameworks.harmonicio.engine.pe.registration import Registration
from frameworks.harmonicio.engine.tls import server_context

logger = logging.getLogger(__name__)

SWITCH_SECONDS = 0.0005
"""For which the heartbeat's thread may hold up a message (Python's own 5 ms are most of the tail of single messages)."""


def main() -> None:
    """Serve until told to stop."""
    log_to_stderr("pe")
    try:
        config = read_pe_config(os.environ)
        _limit(os.environ)
        function = Function(config.spec, config.settings)
    except ConfigError as problem:
        logger.error("%s", problem)  # noqa: TRY400  one line is enough
        sys.exit(1)
    try:
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        listener = socket.create_server((config.host, config.port), family=family)
    except OSError as problem:
        logger.error("no socket at %s:%d: %s", config.host, config.port, problem)  # noqa: TRY400
        sys.exit(2)
    sys.exit(serve(config, listener, function))


def serve(config: PeConfig, listener: socket.socket, function: Function) -> int:
    """Run an engine with its registration; the exit code."""
    engine = Engine(
        listener, function, c_name=config.c_name, token=config.connector_token, compat=config.compat,
        most_message=config.message_bytes, tls=server_context(config.tls) if config.tls is not None else None,
    )  # fmt: skip
    signal.signal(signal.SIGTERM, lambda *_: engine.stop())
    signal.signal(signal.SIGINT, lambda *_: engine.stop())
    if "HARMONICIO_LIFELINE" in os.environ:
        threading.Thread(target=_until_worker_ends, args=(engine,), daemon=True, name="lifeline").start()
    registration = Registration(config, engine)
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()  # what was imported is never looked through again
    registration.start()
    logger.info(
        "PE %s of %s serves at %s:%d", config.id, config.c_name, config.node_addr, config.reached_port or config.port
    )
    engine.run()
    registration.finish()
    return 4 if registration.left else 0


def _until_worker_ends(engine: Engine) -> None:
    """The worker holds the other end of the standard input: whatever ends it ends that."""
    while os.read(0, 4096):
        pass
    logger.warning("the worker has ended: draining")
    engine.stop()


def _limit(environment: "os._Environ[str]") -> None:
    """Apply the limits that the worker set: memory, and a weight of CPU time."""
    if "HARMONICIO_MEMORY_BYTES" in environment:
        most = int(environment["HARMONICIO_MEMORY_BYTES"])
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    if "HARMONICIO_NICE" in environment:
        os.nice(int(environment["HARMONICIO_NICE"]))


if __name__ == "__main__":
    main()
