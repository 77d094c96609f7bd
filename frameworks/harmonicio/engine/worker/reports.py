"""The reports of a worker to the master: periodic, and at once when a PE was started or has ended."""

import asyncio
import logging
import time

from frameworks.harmonicio.engine.config import WorkerConfig
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.wire.literal import write_literal
from frameworks.harmonicio.engine.worker.master_client import MasterClient
from frameworks.harmonicio.engine.worker.pe_host import PeHost

logger = logging.getLogger(__name__)

_CHECK_INTERVAL_S = 0.25


class Reporter:
    """Sends reports until cancelled."""

    def __init__(self, config: WorkerConfig, host: PeHost, master: MasterClient) -> None:
        self._config, self._host, self._master = config, host, master
        self._requested = asyncio.Event()
        self.reached = True
        """whether the master accepted the last report"""

    def report_now(self) -> None:
        """Send the next report at once."""
        self._requested.set()

    async def report_end(self, short_id: str, c_name: str) -> bool:
        """Report that a PE has ended; return whether the master agreed."""
        return await self._master.put({"token": "None", "finished": short_id, "c_name": c_name}, b"") == 200

    async def run(self) -> None:
        """Send reports, and remove PEs that have ended."""
        config = self._config
        while True:
            self._requested.clear()
            try:
                report = await self._host.report()
                status = await self._master.put({"token": "None"}, write_literal(report).encode())
                if (status == 200) != self.reached:
                    logger.warning("the master at %s:%d answers %d", config.master_host, config.master_port, status)
                self.reached = status == 200
                for ended in await self._host.remove_ended():
                    logger.info("PE %s of %s ended: %s", ended.short_id, ended.c_name, ended.status)
            except HarmonicError as error:
                logger.warning("no report: %s", error)
            await self._wait()

    async def _wait(self) -> None:
        """Wait until the next report is due: by time, on request, or when a PE has ended."""
        until = time.monotonic() + self._config.report_seconds
        while time.monotonic() < until and not self._requested.is_set():
            await asyncio.sleep(min(_CHECK_INTERVAL_S, self._config.report_seconds))
            if self._host.any_ended():
                return
