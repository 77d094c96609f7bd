"""Requests of a worker to its master."""

import aiohttp

from frameworks.harmonicio.engine.config import WorkerConfig
from frameworks.harmonicio.engine.http import base_url
from frameworks.harmonicio.engine.tls import client_context

REQUEST_TIMEOUT_S = 5.0


class MasterClient:
    """Sends reports to the master.

    Args:
        config: of this worker.
        session: closed by its owner.
    """

    def __init__(self, config: WorkerConfig, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._url = f"{base_url(config.master_host, config.master_port, tls=config.tls is not None)}/status"
        self._headers = {"Authorization": f"Bearer {config.tokens.worker}"} if config.tokens.worker else {}
        self._tls = client_context(config.tls) if config.tls is not None else True

    async def put(self, query: dict[str, str], body: bytes) -> int:
        """Send a report; return the status of the answer, 0 when there was none."""
        try:
            async with self._session.put(
                self._url, params=query, data=body, headers=self._headers, ssl=self._tls
            ) as answer:
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return 0
