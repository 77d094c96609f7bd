"""An interrupt ends the command wherever it comes."""

import os
import subprocess
import sys
from pathlib import Path

from sample_runs import make_run

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


def test_output_that_nobody_reads_changes_no_exit_code() -> None:
    """An exit code of 1 would say that it is a bug; and a terminal that lacks a character shows its number."""
    code = "from bench.cli.output import say; say('read'); say('\u2013'); raise SystemExit(4)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        assert done.stdout is not None
        done.stdout.close()
        _, said = done.communicate(timeout=120)
    assert (done.returncode, said) == (4, b"")


def test_a_character_that_a_terminal_lacks_is_shown_by_its_number(tmp_path: Path) -> None:
    """It is no traceback."""
    run = make_run(tmp_path / "run")
    words = ["advise", str(run), "--rate", "1k/s", "--size", "1kB", "--cost", "0"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "bench", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "\\u2013" in done.stdout


def test_a_folder_in_place_of_a_file_is_one_line(tmp_path: Path) -> None:
    """It says which, and is no traceback."""
    run = make_run(tmp_path / "run")
    (run / "trials.jsonl").unlink()
    (run / "trials.jsonl").mkdir()
    command = [sys.executable, "-m", "bench", "verify", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "trials.jsonl" in done.stderr
