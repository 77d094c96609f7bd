"""The environment keeps resources between cells; several threads may ask for them, also while it is closed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from bench.config.site import Site
from bench.errors import ServiceError
from bench.plugins.environment import RunEnvironment
from bench.system.supervisor import Supervisor

TIMEOUT_S = 20


class ClosableResource:
    """A resource that knows whether it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def alive(self) -> bool:
        return not self.closed

    def close(self) -> None:
        self.closed = True


def environment(folder: Path) -> RunEnvironment:
    supervisor = Supervisor(folder / "children", folder / "logs")
    return RunEnvironment(Site(), supervisor, folder / "data", folder / "cache", cores=1)


def test_two_threads_get_the_same_resource(tmp_path):
    """The second waits for the first, which makes it."""
    begun, go = Event(), Event()

    def slow() -> ClosableResource:
        begun.set()
        assert go.wait(TIMEOUT_S)
        return ClosableResource()

    with environment(tmp_path) as env, ThreadPoolExecutor(2) as pool:
        first = pool.submit(env.cached_resource, "server", slow)
        assert begun.wait(TIMEOUT_S)
        second = pool.submit(env.cached_resource, "server", ClosableResource)
        go.set()
        assert first.result(TIMEOUT_S) is second.result(TIMEOUT_S)


def test_resources_of_other_keys_are_made_meanwhile(tmp_path):
    """Nobody waits for what he did not ask for."""
    go = Event()
    with environment(tmp_path) as env, ThreadPoolExecutor(1) as pool:
        slow = pool.submit(env.cached_resource, "slow", lambda: (go.wait(TIMEOUT_S), ClosableResource())[1])
        quick = env.cached_resource("quick", ClosableResource)
        assert not slow.done()
        go.set()
        assert slow.result(TIMEOUT_S) is not quick


def test_what_is_ready_only_after_the_end_is_closed(tmp_path):
    """A thread that still starts a server when the run is interrupted leaves nothing behind."""
    begun, go, server = Event(), Event(), ClosableResource()

    def slow() -> ClosableResource:
        begun.set()
        assert go.wait(TIMEOUT_S)
        return server

    with ThreadPoolExecutor(1) as pool:
        with environment(tmp_path) as env:
            late = pool.submit(env.cached_resource, "server", slow)
            assert begun.wait(TIMEOUT_S)
        go.set()
        with pytest.raises(ServiceError, match="being stopped"):
            late.result(TIMEOUT_S)
    assert server.closed


def test_a_dead_resource_is_made_anew(tmp_path):
    """The old one is closed."""
    with environment(tmp_path) as env:
        old = env.cached_resource("server", ClosableResource)
        old.close()
        assert env.cached_resource("server", ClosableResource) is not old
