"""A PE of ours with a master of 0.2, 0.3 or the IRM era: it polls as their PEs do, and takes messages in the old framing."""

import http.client
import logging
import threading
from urllib.parse import urlencode

from frameworks.harmonicio.engine.config import PeConfig
from frameworks.harmonicio.engine.pe.engine import Engine

logger = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_PAUSE = 1.0


def poll_old_master(config: PeConfig, engine: Engine, over: threading.Event) -> None:
    """Register, and after each message again; a message in the answer (203) is processed. Returns once it is over."""
    query = urlencode(
        {"token": "None", "batch_addr": config.node_addr, "batch_port": config.reached_port or config.port,
         "batch_status": 0, "c_name": config.c_name, "short_id": config.id}, safe="/:",
    )  # fmt: skip
    while not over.is_set():
        before = engine.function.processed + engine.function.failed
        try:
            connection = http.client.HTTPConnection(config.master_host, config.master_port, timeout=_TIMEOUT_S)
            connection.request("POST", f"/streamRequest?{query}")
            answer = connection.getresponse()
            body = answer.read(config.message_bytes + 1)
            connection.close()
        except (OSError, http.client.HTTPException) as problem:
            logger.warning("the old master does not answer: %s", problem)
            over.wait(_PAUSE)
            continue
        if answer.status == 203 and body:
            done = threading.Event()
            engine.put_raw(body, done.set)
            while not done.wait(_PAUSE) and not over.is_set():
                pass
        elif answer.status == 200:
            while engine.function.processed + engine.function.failed == before and not over.is_set():
                over.wait(0.01)
        else:
            over.wait(_PAUSE)
