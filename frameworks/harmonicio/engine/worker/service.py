"""The worker as a whole: opens its control plane, and reports to the master."""

import asyncio
import contextlib
import pwd
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from aiohttp import web

from frameworks.harmonicio.engine.config import WorkerConfig
from frameworks.harmonicio.engine.errors import ConfigError
from frameworks.harmonicio.engine.http import MAX_BODY, address_family, middlewares, server_logger
from frameworks.harmonicio.engine.tasks import end_process_on_error
from frameworks.harmonicio.engine.tls import server_context
from frameworks.harmonicio.engine.worker.api import WorkerApi
from frameworks.harmonicio.engine.worker.docker import DockerRuntime
from frameworks.harmonicio.engine.worker.master_client import REQUEST_TIMEOUT_S, MasterClient
from frameworks.harmonicio.engine.worker.pe_host import PeHost
from frameworks.harmonicio.engine.worker.processes import ProcessRuntime
from frameworks.harmonicio.engine.worker.reports import Reporter
from frameworks.harmonicio.engine.worker.runtime import Runtime

_STOP_TIMEOUT_S = 10.0
_SHUTDOWN_TIMEOUT_S = 2.0


@contextlib.asynccontextmanager
async def run_worker(config: WorkerConfig) -> AsyncIterator[PeHost]:
    """Run a worker for as long as the block lasts; then its PEs are drained and ended.

    Raises:
        ConfigError: the port cannot be used.
    """
    name = socket.gethostname() if config.name == "auto" else config.name
    async with AsyncExitStack() as stack:
        try:
            listener = socket.create_server((config.host, config.port), family=address_family(config.host))
        except (OSError, UnicodeError) as error:  # UnicodeError: of a host such as a..b
            raise ConfigError(f"the worker cannot listen at {config.host}:{config.port}: {error}") from None
        stack.callback(listener.close)
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
        host = PeHost(config, name, listener.getsockname()[1], _create_runtime(config))
        stack.push_async_callback(host.close, _STOP_TIMEOUT_S)
        reporter = Reporter(config, host, MasterClient(config, session))
        app = web.Application(client_max_size=MAX_BODY, middlewares=middlewares(config.requests_per_second))
        app.add_routes(WorkerApi(config, host, reporter).routes())
        runner = web.AppRunner(app, access_log=None, logger=server_logger, shutdown_timeout=_SHUTDOWN_TIMEOUT_S)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        tls = server_context(config.tls) if config.tls is not None else None
        await web.SockSite(runner, listener, ssl_context=tls).start()
        task = asyncio.create_task(reporter.run())
        task.add_done_callback(end_process_on_error)
        stack.push_async_callback(_cancel, task)
        yield host


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _create_runtime(config: WorkerConfig) -> Runtime:
    if config.runtime == "docker":
        return DockerRuntime(config.docker_socket)
    user = pwd.getpwnam(config.pe_user) if config.pe_user is not None else None
    return ProcessRuntime(Path(config.logs) if config.logs is not None else None, user)
