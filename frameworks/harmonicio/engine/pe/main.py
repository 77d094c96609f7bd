"""The process of a PE, as a worker starts it: its settings are in its environment; it ends when its worker does.

Exit codes: 0 drained, 1 the environment or the function is not valid, 2 no sockets, 3 no thread, 4 idle for too long.
"""

import contextlib
import ctypes
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
from frameworks.harmonicio.engine.pe.engine import Engine, EngineOptions
from frameworks.harmonicio.engine.pe.function import UserFunction
from frameworks.harmonicio.engine.pe.registration import Registration
from frameworks.harmonicio.engine.tls import server_context

logger = logging.getLogger(__name__)

_PR_SET_NO_NEW_PRIVS = 38
"""Of the kernel's include/uapi/linux/prctl.h."""
SWITCH_INTERVAL_S = 0.0005
"""Time for which the heartbeat's thread may delay a message (with Python's 5 ms it dominates the latency's tail)."""


def main() -> None:
    """Serve until stopped by a signal, the worker or the master."""
    log_to_stderr("pe")
    try:
        config = read_pe_config(os.environ)
        _limit(os.environ)
        listener = _listen(config)  # first: a function may tell others that this PE runs
        function = UserFunction(config.spec, config.settings)
        code = serve(config, listener, function)
    except ConfigError as error:
        logger.error("%s", error)  # noqa: TRY400  one line is enough
        sys.exit(1)
    sys.exit(code)


def _listen(config: PeConfig) -> socket.socket:
    """Return a socket that listens; ends the process where another one took the port since the worker chose it."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host, config.port), family=family)
    except OSError as error:
        logger.error("no socket at %s:%d: %s", config.host, config.port, error)  # noqa: TRY400
        sys.exit(2)


def serve(config: PeConfig, listener: socket.socket, function: UserFunction) -> int:
    """Run an engine with its registration; return the exit code."""
    options = EngineOptions(
        c_name=config.c_name, token=config.connector_token, legacy_protocol=config.legacy_protocol,
        max_message_bytes=config.message_bytes,
    )  # fmt: skip
    try:
        engine = Engine(listener, function, options, server_context(config.tls) if config.tls is not None else None)
    except OSError as error:  # such as: too many open files
        logger.error("no sockets: %s", error)  # noqa: TRY400
        return 2
    signal.signal(signal.SIGTERM, lambda *_: engine.stop())
    signal.signal(signal.SIGINT, lambda *_: engine.stop())
    registration = Registration(config, engine)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()  # the garbage collector never scans the imported modules again
    try:
        if "HARMONICIO_LIFELINE" in os.environ:
            threading.Thread(target=_stop_when_worker_ends, args=(engine,), daemon=True, name="lifeline").start()
        registration.start()
    except RuntimeError as error:  # of threading: can't start new thread
        logger.error("%s: the limit of memory or of processes is too low", error)  # noqa: TRY400
        return 3
    logger.info(
        "PE %s of %s serves at %s:%d", config.id, config.c_name, config.node_addr, config.reached_port or config.port
    )
    engine.run()
    registration.finish()
    return 4 if registration.left_idle else 0


def _stop_when_worker_ends(engine: Engine) -> None:
    """Wait for the end of standard input, whose other end the worker holds, and stop the engine."""
    while os.read(0, 4096):
        pass
    logger.warning("the worker has ended: draining")
    engine.stop()


def _limit(environment: "os._Environ[str]") -> None:
    """Apply the limits that the worker set: memory, processes, and a CPU weight; and those of every PE.

    Its processes get no privileges from files that they run (prctl(2), where there is one), and no core file, which
    would have its tokens.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "HARMONICIO_MEMORY_BYTES" in environment:
        max_bytes = int(environment["HARMONICIO_MEMORY_BYTES"])
        resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, max_bytes))
    if "HARMONICIO_PROCESSES" in environment:
        count = int(environment["HARMONICIO_PROCESSES"])
        resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
    if "HARMONICIO_NICE" in environment:
        os.nice(int(environment["HARMONICIO_NICE"]))


if __name__ == "__main__":
    main()
