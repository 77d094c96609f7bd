"""CPU time is attributed to the role that used it."""

import os
import sys
import time
from pathlib import Path

import pytest

from bench.system.child import Role
from bench.system.supervisor import Supervisor
from bench.telemetry.cpu import CpuProbe, cpu_seconds

BURNS = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True); time.sleep(600)"
PARENT = (
    f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {BURNS.replace('; time.sleep(600)', '')!r}])"
)
PARENT += "\nprint('done', flush=True); time.sleep(600)"


def burn(seconds: float) -> None:
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass


def test_own_cpu_time_is_measured() -> None:
    """cpu_seconds returns the CPU time of a process, to the kernel's clock tick."""
    before = cpu_seconds([os.getpid()])
    burn(0.2)
    assert cpu_seconds([os.getpid()]) - before >= 0.18


def test_process_that_is_gone_counts_nothing() -> None:
    """A pid that no process has adds nothing."""
    assert cpu_seconds([2**22 + 1]) == 0


@pytest.mark.parametrize("code", [BURNS, PARENT], ids=["itself", "a child it reaped"])
@pytest.mark.parametrize("role", ["framework", "load", "source"])
def test_cpu_time_is_attributed_to_its_role(tmp_path: Path, role: Role, code: str) -> None:
    """CPU time of a child, or of a descendant that it reaped, counts for its role and no other."""
    with Supervisor(tmp_path / "registry", tmp_path / "logs") as supervisor:
        probe = CpuProbe(supervisor)
        begin = probe.snapshot()
        child = supervisor.start([sys.executable, "-c", code], name="child", role=role)
        child.wait_ready(lambda: "done" in child.log.read_text(), 30)
        cpu = probe.snapshot().since(begin)
    used = {"framework": cpu.framework, "load": cpu.load, "source": cpu.source}
    assert used.pop(role) >= 0.28
    assert list(used.values()) == [0, 0]


def test_cpu_time_of_the_harness_is_attributed_to_no_role(tmp_path: Path) -> None:
    """CPU time of the harness itself counts for no role; it is part of the machine's."""
    probe = CpuProbe(Supervisor(tmp_path / "registry", tmp_path / "logs"))
    begin = probe.snapshot()
    burn(0.2)
    cpu = probe.snapshot().since(begin)
    assert cpu.harness >= 0.18
    assert cpu.busy >= 0.15
    assert cpu.framework == cpu.load == cpu.source == 0


def test_stopped_child_is_left_out(tmp_path: Path) -> None:
    """A child that was stopped between two snapshots makes no role's CPU time negative."""
    with Supervisor(tmp_path / "registry", tmp_path / "logs") as supervisor:
        probe = CpuProbe(supervisor)
        child = supervisor.start([sys.executable, "-c", BURNS], name="child", role="load")
        child.wait_ready(lambda: "done" in child.log.read_text(), 30)
        begin = probe.snapshot()
        child.stop()
        assert probe.snapshot().since(begin).load == 0


def test_memory_is_attributed_to_its_role(tmp_path):
    """A child that holds 60 MB raises the resident memory of its role."""
    code = "import time; held = bytearray(b'x' * 60_000_000); time.sleep(120)"
    with Supervisor(tmp_path / "registry", tmp_path / "logs") as supervisor:
        supervisor.start([sys.executable, "-c", code], name="holder", role="framework", received=int)
        probe, deadline = CpuProbe(supervisor), time.monotonic() + 20
        while probe.snapshot().memory.get("framework", 0) < 60e6:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert probe.snapshot().memory["harness"] > 5e6
