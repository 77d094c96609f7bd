"""`bench` as a process of its own, for tests that start, kill and resume runs."""

import os
import subprocess
import sys
import time

import psutil


class Harness:
    """`bench` with homes of its own, whose processes can be told from everybody else's."""

    def __init__(self, folder, root):
        self.folder, self._root = folder, root
        self.environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "STREAM_BENCH_TEST": str(folder)}

    def started(self, *words):
        command = [sys.executable, "-m", "bench", *words]
        return subprocess.Popen(
            command, cwd=self._root, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def done(self, *words):
        """Exit code and output."""
        process = self.started(*words)
        said, _ = process.communicate(timeout=240)
        return process.returncode, said

    def running(self):
        """Everything that this harness and its children still have running."""
        return [
            process
            for process in psutil.process_iter()
            if _environment(process).get("STREAM_BENCH_TEST") == str(self.folder)
        ]


def _environment(process):
    try:
        return process.environ() if process.status() != psutil.STATUS_ZOMBIE else {}
    except psutil.Error:
        return {}


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} within {seconds} s"
        time.sleep(0.05)
