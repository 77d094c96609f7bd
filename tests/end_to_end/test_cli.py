"""The command says what it found, in one line for each mistake, and ends with the exit code of its kind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bench_command import wait_until
from matplotlib import get_cachedir
from sample_runs import make_run

QUICK_RUN = ("run", "scenarios/smoke.yaml", "--set=systems=capacity/tcp", "--set=grid.message_size=100B",
             "--set=search.budget=1s", "--quiet")  # fmt: skip
"""Words of a run that is over in seconds; its one cell needs no result."""


@pytest.fixture
def bench(request, tmp_path):
    """Runs the command in the repository with homes of its own; (exit code, output, complaints)."""

    def run(*words, cwd=request.config.rootpath):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "COLUMNS": "200", "MPLCONFIGDIR": get_cachedir()}
        env["JAVA_TOOL_OPTIONS"] = os.environ["JAVA_TOOL_OPTIONS"]  # of conftest.py: JVMs live for seconds
        done = subprocess.run(
            [sys.executable, "-m", "bench", *words],
            cwd=cwd,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize(
    "verb",
    [
        "run",
        "check",
        "plan",
        "plugins",
        "report",
        "explain",
        "compare",
        "advise",
        "verify",
        "certify",
        "doctor",
        "install",
        "clean",
    ],
)
def test_every_verb_has_help_with_an_example(bench, verb):
    """The user need not guess."""
    code, said, _ = bench(verb, "--help")
    assert code == 0
    assert "Example:  bench " + verb in said


def test_our_own_scenarios_are_right(bench, request):
    """Every file in scenarios/ passes the check."""
    files = sorted(request.config.rootpath.glob("scenarios/*.yaml"))
    code, said, complaints = bench("check", *map(str, files))
    assert code == 0, complaints
    assert said.count("cells of") == len(files) > 10


def test_what_can_be_installed_is_listed(bench):
    """With its size and the command; a framework that needs nothing is refused."""
    code, said, _ = bench("install")
    assert code == 0
    assert any(line.startswith("bytewax ") and "30 MB" in line for line in said.splitlines())
    code, _, complaints = bench("install", "spark")
    assert (code, "spark needs no installation" in complaints) == (2, True)


def test_a_framework_that_is_not_installed_is_no_failure(bench, tmp_path):
    """A plan names its size, the doctor calls it no mistake, and a run goes on without it."""
    cells = ("--set", "systems=bytewax/kafka", "--set", "grid.message_size=100 B", "--set", "grid.cpu_cost=0 ms")
    code, said, _ = bench("plan", "scenarios/quick.yaml", *cells)
    assert code == 0
    assert "1 of them unsupported" in said
    assert "bytewax-kafka-100B-0ms: bytewax" in said
    assert "30 MB" in said
    assert "30 MB" in bench("doctor")[1]
    code, said, complaints = bench("run", "scenarios/quick.yaml", *cells, "--out", str(tmp_path / "results"), "--quiet")
    assert code == 0, said + complaints
    (folder,) = (tmp_path / "results").iterdir()
    assert '"unsupported"' in (folder / "cells.json").read_text()
    assert bench("verify", str(folder))[0] == 0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("systems=spark/kafak", "did you mean 'spark/kafka'?"),
        ("systems=sprak/kafka", "did you mean 'spark/kafka'?"),
        ("search.strategy=bisecton", "did you mean 'bisection'?"),
        ("settings.kafkka.acks=1", "did you mean 'kafka'?"),
        ("settings.kafka.partitons=4", "did you mean 'partitions'?"),
        ("grid.message_size=10 kb", "did you mean '10 kB'?"),
        ("load.by=swarm", "allowed: inline, locust"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(bench, change, complaint):
    """It names the option, what is allowed, and the nearest name."""
    code, _, complaints = bench("check", "scenarios/quick.yaml", "--set", change)
    assert code == 2
    assert len(complaints.strip().splitlines()) == 1
    assert complaint in complaints
    assert f"--set {change}" in complaints


def test_a_wrong_file_names_its_line(bench, tmp_path):
    """File, line, path, what was found."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        "name: x\nsystems: [capacity/memory]\ngrid: {message_size: [100 B]}\nsettings: {capacity: {celling: 5 /s}}\n"
    )
    code, _, complaints = bench("check", str(wrong))
    assert code == 2
    assert complaints.startswith(f"{wrong}:4: settings.capacity.celling: found")


@pytest.mark.parametrize(
    "words", [["fly"], ["run"], ["run", "--fly", "x"], ["report", "nowhere"], ["run", "nowhere.yaml"]], ids=" ".join
)
def test_a_wrong_command_line_is_exit_code_2(bench, words):
    """One line, no traceback."""
    code, _, complaints = bench(*words)
    assert code == 2
    assert len(complaints.strip().splitlines()) == 1


def test_a_plan_says_what_will_be_needed(bench):
    """Cells, time, passes and what is missing, before anything starts."""
    code, said, _ = bench("plan", "scenarios/quick.yaml")
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()[:3]] == ["cells", "time", "passes"]
    assert "the jars of kafka are not in the cache: they will be downloaded first" in said


def test_the_plugins_are_listed(bench):
    """`bench plugins` lists all installed plugins."""
    _, said, _ = bench("plugins")
    assert "bytewax, capacity, command, flink, harmonicio, python, spark" in said
    assert "dhalion, ds2, fixed, irm, threshold" in said


def test_the_doctor_names_an_endpoint_that_does_not_answer(bench, tmp_path):
    """Exit code 3: something around us is not as the site file says."""
    site = tmp_path / "site.yaml"
    site.write_text("kafka: {bootstrap: '127.0.0.1:1'}\n")
    code, said, _ = bench("doctor", "--site", str(site))
    assert code == 3
    assert "kafka at 127.0.0.1:1: no connection" in said


def test_clean_leaves_a_run_alone_that_goes_on(bench, tmp_path):
    """Only data that nobody uses is deleted."""
    import fcntl

    for name in ("dead", "alive"):
        (tmp_path / name / "data").mkdir(parents=True)
    with (tmp_path / "alive" / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, _ = bench("clean", "--out", str(tmp_path))
    assert code == 0
    assert not (tmp_path / "dead" / "data").exists()
    assert (tmp_path / "alive" / "data").exists()


def test_a_traced_run_is_explained(bench, tmp_path):
    """Its cell has a sentence, and its traces are verified like its other files."""
    smoke = ("run", "scenarios/smoke.yaml", "--set", "grid.message_size=100 B", "--trace", "--quiet")
    code, _, _ = bench(*smoke, "--out", str(tmp_path / "results"))
    assert code in (0, 4)
    (folder,) = (tmp_path / "results").iterdir()
    code, said, _ = bench("explain", str(folder), "--perfetto", str(tmp_path / "trace.json"))
    assert (code, "of the critical path is" in said) == (0, True)
    assert (tmp_path / "trace.json").stat().st_size > 0
    code, said, _ = bench("verify", str(folder))
    assert (code, "no difference" in said) == (0, True)


def test_a_run_of_another_scenario_is_not_gone_on_with(bench, tmp_path):
    """Two scenarios never mix in one folder."""
    folder = tmp_path / "results"
    code, _, _ = bench(*QUICK_RUN, "--out", str(folder))
    assert code in (0, 4)  # finished; whether its cells could be measured is not the question here
    code, _, complaints = bench("run", "scenarios/quick.yaml", "--resume", str(next(folder.iterdir())))
    assert code == 2
    assert "is a run of another scenario" in complaints


def test_a_run_on_another_site_or_machine_is_not_gone_on_with(bench, tmp_path):
    """Its cells would stand in one map with others that cannot be compared to them."""
    smoke = (*QUICK_RUN, "--set", "load.by=locust")
    code, _, _ = bench(*smoke, "--out", str(tmp_path / "results"))
    assert code in (0, 4)
    (folder,) = (tmp_path / "results").iterdir()
    (tmp_path / "site.yaml").write_text("name: lab\nkafka: {bootstrap: 'h:9092'}\n")
    code, _, complaints = bench(*smoke, "--resume", str(folder), "--site", str(tmp_path / "site.yaml"))
    assert (code, "was measured on the site 'this machine'" in complaints) == (2, True)
    (folder / "run.json").write_text(
        re.sub(r'"locust": "[^"]*"', '"locust": "1.0.0"', (folder / "run.json").read_text())
    )
    code, _, complaints = bench(*smoke, "--resume", str(folder))
    assert (code, "was started with locust 1.0.0, not " in complaints) == (2, True)


def test_a_strategy_is_certified(bench, tmp_path):
    """A table, a plot, and every criterion passed."""
    plot = tmp_path / "validation.svg"
    code, said, _ = bench(
        "certify", "--seeds", "4", "--scenario", "generator at 41%", "--jobs", "1", "--plot", str(plot)
    )
    assert code == 0
    assert "lower-bound 2" in said
    assert plot.read_text().startswith("<?xml")


def test_a_strategy_of_ones_own_fails_its_criteria(bench, tmp_path):
    """Found in the folder where the command runs; exit code 4."""
    words = "from bench.search.two_counter import TwoCounter\nfrom bench.search.parameters import SearchParameters\n"
    (tmp_path / "mine.py").write_text(
        words + "def Mine(problem):\n    return TwoCounter(problem, SearchParameters(inflation=0.01))\n"
    )
    code, said, _ = bench(
        "certify", "--strategy", "mine:Mine", "--seeds", "4", "--scenario", "S1 c", "--jobs", "1", cwd=tmp_path
    )
    assert code == 4
    assert "FAIL  S1 continuous: coverage" in said


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("certify", "--strategy", "twocounter"), "did you mean 'two-counter'?"),
        (("certify", "--strategy", "nowhere:Mine"), "found no module 'nowhere'"),
        (("certify", "--strategy", "bench.search.bracketing:Mine"), "has no class 'Mine'"),
        (("certify", "--scenario", "S99"), "no case has that in its name"),
        (("report", ".", ".", "--format", "html"), "leave --format out"),
        (("compare", ".", "."), "a run's folder is what"),
        (("advise", ".", "--rate", "5 /s"), "a run's folder is what"),
        (("advise", "docs/example", "--rate", "5"), "--rate 5: found"),
        (("compare", ".", ".", "--fail-if", "late"), "allowed: slower, faster"),
    ],
)
def test_a_wrong_word_is_one_line(bench, words, complaint):
    """Exit code 2, and what to do."""
    code, _, complained = bench(*words)
    assert code == 2
    assert complaint in complained
    assert complained.count("\n") == 1


@pytest.mark.real
def test_the_servers_find_their_files_below_a_relative_folder(bench, request, tmp_path):
    """Whoever runs it from any folder with the default --out gets a map."""
    (tmp_path / ".cache").symlink_to(Path.home() / ".cache")  # its jars; what the run itself writes is elsewhere
    fast = ["systems=python/kafka", "grid.message_size=1 kB", "grid.cpu_cost=100 us", "search.total=6 s"]
    fast += ["search.start=100 /s", "search.highest=200 /s"]
    changes = [word for change in fast for word in ("--set", change)]
    code, said, complaints = bench(
        "run", str(request.config.rootpath / "scenarios/quick.yaml"), *changes, "--quiet", cwd=tmp_path
    )
    assert code in (0, 4), said + complaints  # 4: on a busy machine no trial counts
    assert list(tmp_path.glob("results/quick-*/report.html"))
    assert list(tmp_path.glob("results/quick-*/series/*.parquet")), "no trial was made"


def test_a_file_that_cannot_be_written_is_one_line_and_exit_code_3(bench, tmp_path):
    """It names the file; whatever the system says of it is no bug of ours."""
    run = make_run(tmp_path / "run")
    (run / "cells.csv").symlink_to("/proc/version")  # not for writing, not for root either
    code, _, complaints = bench("export", str(run), "--format", "csv")
    assert (code, len(complaints.strip().splitlines())) == (3, 1)
    assert "then do it again" in complaints


def test_a_verb_that_is_interrupted_says_so_and_ends_with_130(request):
    """One line, no traceback; also where nothing is to be resumed."""
    words = [sys.executable, "-m", "bench", "certify"]
    process = subprocess.Popen(words, cwd=request.config.rootpath, stdout=-1, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: _catches(process.pid, signal.SIGTERM), 60, "the command did not begin")
    process.send_signal(signal.SIGTERM)
    _, complaints = process.communicate(timeout=60)
    # CPython ends with the signal where the interrupt came within an exec(), such as that of a dataclass that is
    # imported, although it was caught; a shell shows 130 for both.
    assert process.returncode in (130, -signal.SIGINT)
    assert complaints.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in complaints


def _catches(pid, number):
    """Whether a process has a handler for a signal (proc(5) /proc/PID/status, SigCgt)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(line for line in lines if line.startswith("SigCgt:")).split()[1]
    return bool(int(caught, 16) >> (number - 1) & 1)
