"""A harness that is killed in the middle of a trial leaves nothing running and loses nothing that it had measured."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from bench.storage.run_folder import read_results, read_trials

pytestmark = pytest.mark.real

SCENARIO = """
name: crash
systems: [python/kafka]
grid: {message_size: [100 B, 1 kB], cpu_cost: [10 ms]}
search: {precision: 40 %, budget: 60 s}
timing: {settle: 200 ms, window: 1 s}
"""


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


def test_a_killed_run_is_cleaned_up_and_gone_on_with(tmp_path, request):
    """Killed with -9 in mid-trial: no process is left, the finished cell is not measured again, the map is completed."""
    harness = Harness(tmp_path, request.config.rootpath)
    (tmp_path / "crash.yaml").write_text(SCENARIO)
    run = harness.started("run", str(tmp_path / "crash.yaml"), "--out", str(tmp_path / "results"))
    wait_until(lambda: list(tmp_path.glob("results/*/cells.json")), 150, "no cell was finished")
    folder = next((tmp_path / "results").iterdir())
    cells = len(read_trials(folder))
    wait_until(lambda: len(read_trials(folder)) > cells, 60, "no trial of the second cell was finished")
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    before = (folder / "trials.jsonl").read_bytes()

    code, _ = harness.done("clean", "--out", str(tmp_path / "results"))
    assert code == 0
    wait_until(lambda: not harness.running(), 10, "processes are still running")
    assert not (folder / "data").exists()

    code, said = harness.done("run", str(tmp_path / "crash.yaml"), "--resume", str(folder))
    assert code == 0, said
    assert (folder / "trials.jsonl").read_bytes().startswith(before)
    results = read_results(folder)
    assert len(results) == 2
    assert sum(result.trials for result in results) == len(read_trials(folder))
    assert not harness.running()
