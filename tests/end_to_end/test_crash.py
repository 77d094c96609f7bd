"""A harness that is killed in the middle of a trial leaves nothing running and loses nothing that it had measured."""

import signal

import pytest
from bench_command import Harness, wait_until

from bench.storage.run_folder import read_results, read_trials

pytestmark = pytest.mark.real

SCENARIO = """
name: crash
systems: [python/kafka]
grid: {message_size: [100 B, 1 kB]}
search: {precision: 40 %, start: 100 /s, highest: 200 /s, budget: 12 s}
timing: {settle: 200 ms, window: 1 s}
"""


def test_a_killed_run_is_cleaned_up_and_gone_on_with(tmp_path, request):
    """Killed with -9 in mid-trial: no process is left, the finished cell is not measured again, the map is complete."""
    harness = Harness(tmp_path, request.config.rootpath)
    (tmp_path / "crash.yaml").write_text(SCENARIO)
    (tmp_path / "site.yaml").write_text("shared_machine: true\n")  # other work invalidates no trial
    command = ("run", str(tmp_path / "crash.yaml"), "--site", str(tmp_path / "site.yaml"))
    run = harness.started(*command, "--out", str(tmp_path / "results"))
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

    code, said = harness.done(*command, "--resume", str(folder))
    assert code == 0, said
    assert (folder / "trials.jsonl").read_bytes().startswith(before)
    results = read_results(folder)
    assert len(results) == 2
    assert sum(result.trials for result in results) == len(read_trials(folder))
    assert not harness.running()
