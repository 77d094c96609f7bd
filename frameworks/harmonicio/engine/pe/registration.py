"""How a PE makes itself known: a heartbeat to our master from a thread of its own; the old registration where the master is old."""

import contextlib
import http.client
import json
import logging
import threading
import time

from frameworks.harmonicio.engine.config import PeConfig
from frameworks.harmonicio.engine.pe.engine import Engine
from frameworks.harmonicio.engine.pe.legacy_master import poll_old_master
from frameworks.harmonicio.engine.tls import http_connection

logger = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
_TIMEOUT_S = 5.0


class Registration:
    """Beats until `finish`; a master that does not answer is tried again for ever, the data plane goes on meanwhile."""

    def __init__(self, config: PeConfig, engine: Engine) -> None:
        self._config, self._engine = config, engine
        self._over = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._beat, name="registration", daemon=True)
        self.left = False

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def finish(self) -> None:
        """Say that this PE is gone; gives up after a moment."""
        self._over.set()
        self._thread.join(timeout=_TIMEOUT_S)
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._say("gone")
        self._hang_up()

    def _beat(self) -> None:
        reached = True
        while not self._over.is_set():
            try:
                status, answer = self._say("draining" if self.left else "running")
                reached = True
            except (OSError, http.client.HTTPException, ValueError) as problem:
                self._hang_up()
                if reached:
                    logger.warning("the master does not answer: %s", problem)
                reached = False
                self._over.wait(BEAT_SECONDS / 2)
                continue
            if status == 404:
                logger.info("the master is an old one: registering as its PEs do")
                poll_old_master(self._config, self._engine, self._over)
                return
            if status == 200 and not answer.get("go_on", True):
                self._engine.stop()
            self._leave_when_idle()
            self._over.wait(BEAT_SECONDS)

    def _leave_when_idle(self) -> None:
        """A volatile PE that has nothing to do drains and ends."""
        idle = self._config.idle_seconds
        engine = self._engine
        if idle is not None and not self.left and time.monotonic() > engine.last_work + idle and not engine.waiting:
            self.left = True
            self._over.wait(0)
            engine.stop()

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _say(self, state: str) -> tuple[int, dict[str, object]]:
        config, function, engine = self._config, self._engine.function, self._engine
        stats = {
            "processed": function.processed,
            "failed": function.failed,
            "duplicates": engine.duplicates,
            "waiting": engine.waiting,
            "window": engine.window.messages,
            "guests": engine.guests,
            "busy_seconds": function.busy,
            "cpu_seconds": time.process_time(),
        }
        body = {"id": config.id, "c_name": config.c_name, "host": config.node_addr, "port": config.reached_port or config.port,
                "worker": config.worker, "state": state, "stats": stats}  # fmt: skip
        headers = {"Authorization": f"Bearer {config.token}"} if config.token else {}
        if self._connection is None:
            self._connection = http_connection(config.master_host, config.master_port, _TIMEOUT_S, config.tls)
        self._connection.request("POST", "/v1/beat", json.dumps(body), headers)
        answer = self._connection.getresponse()
        text = answer.read(2**16)
        return answer.status, json.loads(text) if answer.status == 200 else {}
