"""Free memory is used and left again by child processes, and never all of it."""

import subprocess
import sys

from bench.system import memory


def test_memory_is_used_in_child_processes_that_end(monkeypatch):
    """The harness itself holds none of it afterwards."""
    monkeypatch.setattr(memory, "MAX_BYTES", 2**28)
    assert memory.use_free_memory() is None


def test_a_child_uses_as_much_as_it_is_told():
    """The most memory that it ever held is that, and what an interpreter needs."""
    text = "import sys, resource; sys.argv = ['', str(2**29)]; from bench.system import memory; memory.main(); "
    text += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60)
    assert 2**19 <= int(done.stdout) <= 2**19 + 2**17
