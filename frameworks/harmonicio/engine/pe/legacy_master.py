"""Registration at a master of 0.2, 0.3 or the IRM era: polling as the PEs of that time do."""

import http.client
import logging
import threading
from urllib.parse import urlencode

from frameworks.harmonicio.engine.config import PeConfig
from frameworks.harmonicio.engine.pe.engine import Engine

logger = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_RETRY_INTERVAL_S = 1.0
_CHECK_INTERVAL_S = 0.01


def poll_legacy_master(config: PeConfig, engine: Engine, stopped: threading.Event) -> None:
    """Register at a legacy master, and again after each message, until stopped.

    A message in the answer (203) is processed before the next poll.
    """
    query = urlencode(
        {"token": "None", "batch_addr": config.node_addr, "batch_port": config.reached_port or config.port,
         "batch_status": 0, "c_name": config.c_name, "short_id": config.id}, safe="/:",
    )  # fmt: skip
    while not stopped.is_set():
        before = engine.function.processed + engine.function.failed
        try:
            connection = http.client.HTTPConnection(config.master_host, config.master_port, timeout=_TIMEOUT_S)
            connection.request("POST", f"/streamRequest?{query}")
            answer = connection.getresponse()
            body = answer.read(config.message_bytes + 1)
            connection.close()
        except (OSError, http.client.HTTPException) as error:
            logger.warning("the legacy master does not answer: %s", error)
            stopped.wait(_RETRY_INTERVAL_S)
            continue
        if answer.status == 203 and body:
            done = threading.Event()
            engine.accept_raw_message(body, done.set)
            while not done.wait(_RETRY_INTERVAL_S) and not stopped.is_set():
                pass
        elif answer.status == 200:
            while engine.function.processed + engine.function.failed == before and not stopped.is_set():
                stopped.wait(_CHECK_INTERVAL_S)
        else:
            stopped.wait(_RETRY_INTERVAL_S)
