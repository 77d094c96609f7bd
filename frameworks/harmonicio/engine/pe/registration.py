"""The heartbeat of a PE to the master, from its own thread; for a legacy master, the polling registration."""

import contextlib
import http.client
import json
import logging
import threading
import time

from frameworks.harmonicio.engine.config import PeConfig
from frameworks.harmonicio.engine.pe.engine import Engine
from frameworks.harmonicio.engine.pe.legacy_master import poll_legacy_master
from frameworks.harmonicio.engine.tls import http_connection

logger = logging.getLogger(__name__)

HEARTBEAT_INTERVAL_S = 1.0
_TIMEOUT_S = 5.0


class Registration:
    """Sends heartbeats until `finish`; the data plane goes on while the master does not answer."""

    def __init__(self, config: PeConfig, engine: Engine) -> None:
        self._config, self._engine = config, engine
        self._stopped = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._send_heartbeats, name="registration", daemon=True)
        self.left_idle = False
        """whether this PE ended because it was idle for too long"""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def finish(self) -> None:
        """Stop the thread and report that this PE has ended; gives up after a timeout."""
        self._stopped.set()
        self._thread.join(timeout=_TIMEOUT_S)
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._send("gone")
        self._disconnect()

    def _send_heartbeats(self) -> None:
        reached = True
        while not self._stopped.is_set():
            try:
                status, answer = self._send("draining" if self._engine.state.draining else "running")
                reached = True
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._disconnect()
                if reached:
                    logger.warning("the master does not answer: %s", error)
                reached = False
                self._stopped.wait(HEARTBEAT_INTERVAL_S / 2)
                continue
            if status == 404:
                logger.info("the master is a legacy one: registering as its PEs do")
                poll_legacy_master(self._config, self._engine, self._stopped)
                return
            if status == 200 and not answer.get("go_on", True):
                self._engine.stop()
            self._stop_when_idle()
            self._stopped.wait(HEARTBEAT_INTERVAL_S)

    def _stop_when_idle(self) -> None:
        """Stop a volatile PE that has been idle for too long."""
        idle_seconds, since = self._config.idle_seconds, self._engine.state.idle_since()
        if idle_seconds is None or self.left_idle or since is None:
            return
        if time.monotonic() > since + idle_seconds:
            self.left_idle = True
            self._engine.stop()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _send(self, pe_state: str) -> tuple[int, dict[str, object]]:
        """Send a heartbeat; return the status and the answer."""
        config, function, state = self._config, self._engine.function, self._engine.state
        stats = {
            "processed": function.processed,
            "failed": function.failed,
            "duplicates": state.duplicates,
            "waiting": state.waiting,
            "window": state.window.messages,
            "guests": self._engine.connections,
            "busy_seconds": function.busy_seconds,
            "cpu_seconds": time.process_time(),
        }
        body = {"id": config.id, "c_name": config.c_name, "host": config.node_addr, "port": config.reached_port or
        config.port,
                "worker": config.worker, "state": pe_state, "stats": stats}  # fmt: skip
        headers = {"Authorization": f"Bearer {config.token}"} if config.token else {}
        if self._connection is None:
            self._connection = http_connection(config.master_host, config.master_port, _TIMEOUT_S, config.tls)
        self._connection.request("POST", "/v1/beat", json.dumps(body), headers)
        answer = self._connection.getresponse()
        text = answer.read(2**16)
        return answer.status, json.loads(text) if answer.status == 200 else {}
