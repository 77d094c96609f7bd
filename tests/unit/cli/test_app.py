"""An interrupt ends the command wherever it comes."""

import subprocess
import sys

SCRIPT = """
import os, signal, time
from bench.cli.app import catch_interrupts

class Interrupting:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.time()

catch_interrupts()
try:
    Interrupting()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        pass
    print("lost")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_within_a_finalizer_is_not_lost() -> None:
    """Python prints and ignores it there; it comes again right afterwards, and nothing is printed."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
