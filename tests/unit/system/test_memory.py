"""Free memory is used and left again by child processes, and never all of it."""

import math
import subprocess
import sys

import pytest

from bench.system import memory


def test_memory_is_used_in_child_processes_that_end(monkeypatch):
    """The harness itself holds none of it afterwards."""
    monkeypatch.setattr(memory, "MAX_BYTES", 2**28)
    assert memory.use_free_memory() is None


def test_a_child_uses_as_much_as_it_is_told():
    """The most memory that it ever held is that, and what an interpreter needs."""
    text = "import sys; sys.argv = ['', str(2**29)]; from bench.system import memory; memory.main(); "
    text += "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"  # of this program, in kB
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60)
    assert 2**19 <= int(done.stdout) <= 2**19 + 2**17


@pytest.mark.parametrize(("limit", "left"), [("max", math.inf), ("1000", 400)])
def test_the_limit_of_a_container_is_respected(tmp_path, limit, left):
    """The group, or one above it, allows a thousand bytes, of which 600 are used."""
    for folder, text in ((tmp_path / "a" / "b", "max"), (tmp_path / "a", limit)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(f"{text}\n")
        (folder / "memory.current").write_text("600\n")
    (tmp_path / "own").write_text("0::/a/b\n")
    assert memory.left_in_groups(tmp_path, tmp_path / "own") == left


def test_without_control_groups_there_is_no_limit(tmp_path):
    """Such as on a machine that mounts none."""
    assert memory.left_in_groups(tmp_path, tmp_path / "own") == math.inf
