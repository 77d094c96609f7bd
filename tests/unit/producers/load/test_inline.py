"""The load generator in the harness's own process passes on what ends its thread."""

import time

import pytest

from bench.config.site import Site
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.system.supervisor import Supervisor
from bench.workload.load_spec import LoadSpec
from producers.load.inline import InlineLoadGenerator

TOO_LARGE = 2**50
"""Bytes of a message that no address space holds."""


def test_a_thread_without_memory_says_so_to_the_harness(tmp_path, capfd):
    """The campaign found its traceback on the terminal; the harness has one line for it."""
    supervisor = Supervisor(tmp_path / "children", tmp_path / "logs")
    source = registry.make_source("files", {})
    with RunEnvironment(Site(), supervisor, tmp_path / "data", tmp_path / "cache", cores=1) as env:
        load = InlineLoadGenerator(source.open(Cell("python", "files", 100, 0.0), env), env)
        load.start(LoadSpec(1, 10.0, time.monotonic(), 1.0, message_bytes=TOO_LARGE, cpu_seconds=0.0, entropy=0.5))
        load._thread.join(60)
        with pytest.raises(MemoryError):
            load.poll()
        load.close()
        source.close()
    assert "Traceback" not in capfd.readouterr().err
