"""Children are started, watched and ended; none outlives its harness; no process of others is touched."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from bench.errors import NotReadyError, ProcessDiedError, ServiceError
from bench.system.child import Child
from bench.system.ipc import Failure, Ready
from bench.system.orphans import MARKER_VARIABLE, Orphan, orphans, reap_orphans
from bench.system.procfs import boot_id, environment_of, stat_of
from bench.system.supervisor import Supervisor, run_tool
from bench.workload.load_spec import Cancel

SLEEPS = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = "import signal\nfor s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n" + SLEEPS
FAMILY = f"""
import os, subprocess, sys
grandchild = subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], preexec_fn=lambda: os.setpgid(0, 0))
print("grandchild", grandchild.pid, flush=True)
{SLEEPS}
"""
WRITES_NAME = """
import time
try:
    print("up", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    with open({file!r}, "a") as order:
        order.write("{name} ")
"""
HARNESS = f"""
import sys
from pathlib import Path
from bench.system.supervisor import Supervisor
with Supervisor(Path(sys.argv[1]) / "registry", Path(sys.argv[1]) / "logs") as supervisor:
    child = supervisor.start([sys.executable, "-c", {FAMILY!r}], name="family", role="framework")
    child.wait_ready(lambda: "up" in child.log.read_text(), 20)
    print(*child.members(), flush=True)
    sys.stdin.read()
"""
TALKS = """
import socket, sys
from bench.system.ipc import Channel
from bench.system.ipc import Failure, Ready
from bench.workload.load_spec import Cancel
channel = Channel.inherited(int(sys.argv[sys.argv.index("--channel") + 1]), Cancel)
try:
    while True:
        for _ in channel.receive(60):
            channel.send(Ready())
except EOFError:
    print("asked to end", flush=True)
"""


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    stat = stat_of(pid)
    return stat is not None and stat.running


def python(supervisor: Supervisor, code: str, name: str = "child") -> Child:
    child = supervisor.start([sys.executable, "-c", code], name=name, role="load")
    child.wait_ready(lambda: "up" in child.log.read_text(), 20)
    return child


def reapers(registry: Path) -> list[psutil.Process]:
    return [process for process in psutil.Process().children() if str(registry) in command_of(process)]


def command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # gone, or a child of another test that is not reaped yet
        return []


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "registry"


@pytest.fixture
def supervisor(registry: Path, tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(registry, tmp_path / "logs") as supervisor:
        yield supervisor


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", list[int]]]:
    """A harness in a process of its own, with the pids of its child and its grandchild."""
    command = [sys.executable, "-c", HARNESS, str(tmp_path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-3, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        yield process, [int(word) for word in process.stdout.readline().split()]
        process.kill()


def test_child_writes_to_its_log(supervisor: Supervisor) -> None:
    """Both outputs of a child are in the log named after it, and a second child of the name has its own log."""
    for name in ("talk.log", "talk-2.log"):
        child = supervisor.start(["sh", "-c", "echo out; echo err >&2"], name="talk", role="source")
        assert child.wait_end(20) == 0
        assert (child.log.name, child.log.read_text()) == (name, "out\nerr\n")


def test_environment_is_added_to(supervisor: Supervisor) -> None:
    """A child has the harness's environment and the variables given to it."""
    child = supervisor.start(["sh", "-c", "echo $PATH $COLOUR"], name="env", role="load", env={"COLOUR": "red"})
    child.wait_end(20)
    assert child.log.read_text().split() == [*os.environ["PATH"].split(), "red"]


def test_unknown_command_is_a_service_error(supervisor: Supervisor, registry: Path) -> None:
    """A command that does not exist is an error of one line, and no record of it stays."""
    with pytest.raises(ServiceError, match=r"ghost cannot be started: .*no-such-command"):
        supervisor.start(["no-such-command"], name="ghost", role="load", received=Ready)
    assert not list(registry.iterdir())


def test_child_replies_to_a_command(supervisor: Supervisor) -> None:
    """A child started with `received` replies through its channel."""
    child = supervisor.start([sys.executable, "-c", TALKS], name="talker", role="load", received=Ready)
    child.inbox.send(Cancel())
    assert list(child.inbox.receive(timeout=20)) == [Ready()]


@pytest.mark.parametrize(
    ("action", "message"),
    [("channel.send(Failure('no disk'))", "talker ended: no disk"), ("sys.exit(7)", "exit code 7")],
)
def test_a_child_that_cannot_reply_is_an_error_with_its_reason(
    supervisor: Supervisor, action: str, message: str
) -> None:
    """The error has the reason of its Failure, or its exit code if it ended without a message."""
    program = TALKS.replace("channel.send(Ready())", action)
    child = supervisor.start([sys.executable, "-c", program], name="talker", role="load", received=Ready | Failure)
    child.inbox.send(Cancel())
    with pytest.raises(ProcessDiedError, match=message):
        child.wait_reply(Ready, 20)


def test_a_child_is_waited_for_until_it_replies(supervisor: Supervisor) -> None:
    """Other messages are skipped; a child that does not reply in time is a NotReadyError."""
    child = supervisor.start([sys.executable, "-c", TALKS], name="talker", role="load", received=Ready | Failure)
    child.inbox.send(Cancel())
    assert child.wait_reply(Ready, 20) == Ready()
    with pytest.raises(NotReadyError, match="talker did not answer"):
        child.wait_reply(Ready, 0.1)


def test_closed_channel_is_the_polite_end(supervisor: Supervisor) -> None:
    """Closing its channel ends a child, and no signal is needed."""
    child = supervisor.start([sys.executable, "-c", TALKS], name="talker", role="load", received=Ready)
    child.stop(timeout_s=20)
    assert (child.exit_code, child.log.read_text()) == (0, "asked to end\n")


def test_probe_makes_ready(supervisor: Supervisor) -> None:
    """wait_ready returns once the probe returns True."""
    answers = iter([False, False, True])
    python(supervisor, SLEEPS).wait_ready(lambda: next(answers), 20)
    assert next(answers, None) is None


def test_not_ready_carries_the_last_lines(supervisor: Supervisor) -> None:
    """A child that is not ready in time is reported with its log and the log's last ten lines."""
    child = python(supervisor, "for i in range(30): print('line', i)\n" + SLEEPS)
    with pytest.raises(NotReadyError, match="child was not ready within 0 s") as caught:
        child.wait_ready(lambda: False, 0)
    assert caught.value.log == child.log
    assert str(caught.value).split("\n    ")[1:] == [*(f"line {i}" for i in range(21, 30)), "up"]


def test_died_carries_exit_code_and_last_lines(supervisor: Supervisor) -> None:
    """A child that ends before it is ready is reported with its exit code and its log's last lines."""
    child = supervisor.start(["sh", "-c", "echo no memory; exit 7"], name="child", role="load")
    with pytest.raises(ProcessDiedError, match=r"child ended with exit code 7 \(log: .*child.log\)\n    no memory"):
        child.wait_ready(lambda: False, 20)


def test_a_full_disk_is_named_first(supervisor: Supervisor) -> None:
    """The first line of an error says so, wherever the end of the log does."""
    child = python(supervisor, "print('No space left on device\\n' + 20 * 'at line\\n')\n" + SLEEPS)
    with pytest.raises(NotReadyError, match=r"^child was not ready within 0 s: No space left on device \("):
        child.wait_ready(lambda: False, 0)


def test_unfinished_tool_is_not_ready(supervisor: Supervisor) -> None:
    """wait_end does not wait for longer than its limit."""
    with pytest.raises(NotReadyError, match="did not end within 0 s"):
        python(supervisor, SLEEPS).wait_end(0)


def test_stop_ends_other_process_groups_of_the_session(supervisor: Supervisor) -> None:
    """Stopping a child ends a grandchild too that made a process group of its own and ignores polite signals."""
    child = python(supervisor, FAMILY)
    grandchild = int(child.log.read_text().split()[1])
    until(lambda: child.members() == [child.pid, grandchild] and os.getpgid(grandchild) == grandchild)
    child.stop(timeout_s=0.1)
    assert not runs(child.pid)
    assert not runs(grandchild)


def test_dead_childs_descendants_are_ended(supervisor: Supervisor) -> None:
    """A grandchild that outlived its parent is ended when the child is stopped."""
    child = supervisor.start(["sh", "-c", "sleep 600 & echo $!"], name="child", role="load")
    assert child.wait_end(20) == 0
    grandchild = int(child.log.read_text())
    assert child.members() == [grandchild]
    child.stop(timeout_s=0.1)
    assert not runs(grandchild)


def test_stubborn_child_is_killed(supervisor: Supervisor) -> None:
    """A child that ignores the polite signals is killed and reaped; stopping it again does nothing."""
    child = python(supervisor, STUBBORN)
    child.stop(timeout_s=0.1)
    child.stop()
    assert child.exit_code == -signal.SIGKILL
    assert stat_of(child.pid) is None


def test_stopped_child_is_forgotten(supervisor: Supervisor, registry: Path) -> None:
    """A child that was stopped is not among the children any more, and its record is gone."""
    first, second = python(supervisor, SLEEPS, "first"), python(supervisor, SLEEPS, "second")
    first.stop()
    assert supervisor.children == (second,)
    assert len(list(registry.iterdir())) == 1


def test_nothing_is_started_after_the_close(supervisor: Supervisor) -> None:
    """A thread that comes too late, when the run is interrupted, leaves no process."""
    supervisor.close()
    with pytest.raises(ServiceError, match="everything is being stopped"):
        supervisor.start(["true"], name="late", role="source")
    assert supervisor.children == ()


def test_two_threads_may_stop_a_child(supervisor: Supervisor) -> None:
    """It is reaped and forgotten once."""
    child = supervisor.start(["sleep", "60"], name="sleeper", role="source")
    with ThreadPoolExecutor(4) as pool:
        for stopped in [pool.submit(child.kill) for _ in range(4)]:
            stopped.result(20)
    assert not child.alive()
    assert supervisor.children == ()


def test_close_stops_in_reverse(registry: Path, tmp_path: Path) -> None:
    """Closing a Supervisor stops the child that was started last first, and leaves neither record nor reaper."""
    order = tmp_path / "order"
    with Supervisor(registry, tmp_path / "logs") as supervisor:
        for name in ("server", "client"):
            python(supervisor, WRITES_NAME.format(file=str(order), name=name), name)
        assert len(reapers(registry)) == 1
    assert order.read_text().split() == ["client", "server"]
    assert not list(registry.iterdir())
    assert not reapers(registry)


def test_killed_harness_leaves_nothing(harness: tuple["subprocess.Popen[str]", list[int]], registry: Path) -> None:
    """The children of a harness that was killed with -9 are ended, with their descendants and records."""
    process, pids = harness
    assert len(pids) == 2
    process.kill()
    until(lambda: not any(map(runs, pids)))
    until(lambda: not list(registry.iterdir()))


@pytest.mark.parametrize("signals", [1, 2], ids=["one Ctrl-C", "two Ctrl-C"])
def test_interrupted_harness_leaves_nothing(
    harness: tuple["subprocess.Popen[str]", list[int]], registry: Path, signals: int
) -> None:
    """Ctrl-C ends a harness with all its children, and so does a second one while it is stopping them."""
    process, pids = harness
    for _ in range(signals):
        process.send_signal(signal.SIGINT)
        until(lambda: not runs(pids[0]) or not runs(process.pid))
    until(lambda: not any(map(runs, [process.pid, *pids])))
    until(lambda: not list(registry.iterdir()))
    assert not orphans(registry)


def test_orphans_are_ended(harness: tuple["subprocess.Popen[str]", list[int]], registry: Path) -> None:
    """Children that harness and reaper left when both were killed are found, named and ended."""
    process, pids = harness
    reaper = next(child for child in psutil.Process(process.pid).children() if str(registry) in child.cmdline())
    reaper.kill()
    process.kill()
    process.wait(timeout=20)
    assert [orphan.running() for orphan in orphans(registry)] == [pids]
    assert reap_orphans(registry) == [f"family: ended processes {pids[0]}, {pids[1]}"]
    assert not any(map(runs, pids))
    assert not orphans(registry)


def test_running_harness_has_no_orphans(supervisor: Supervisor, registry: Path) -> None:
    """A record whose harness is alive is no orphan, and its child goes on."""
    child = python(supervisor, SLEEPS)
    assert not orphans(registry)
    assert reap_orphans(registry) == []
    assert child.alive()


def record_of(child: Child, **changed: object) -> Orphan:
    """Return a record that attributes a running process to a dead harness."""
    born = stat_of(child.pid)
    assert born is not None
    marker = environment_of(child.pid)[MARKER_VARIABLE]
    return Orphan(marker, "other", "old", "old.log", boot_id(), child.pid, 1, child.pid, born.created)._replace(
        **changed
    )


@pytest.mark.parametrize(
    "changed",
    [{"marker": "another"}, {"session": 1}, {"boot": "another"}],
    ids=["number reused", "another session", "before the last boot"],
)
def test_strangers_are_left_alone(supervisor: Supervisor, registry: Path, changed: dict[str, object]) -> None:
    """A process that matches the record only in part is not touched, and the record is removed."""
    child = python(supervisor, SLEEPS)
    record_of(child, **changed).write(registry)
    assert len(orphans(registry)) == 1
    assert reap_orphans(registry) == []
    assert child.alive()
    assert not orphans(registry)


def test_child_without_session_yet_is_found(supervisor: Supervisor, registry: Path) -> None:
    """A harness killed while it started a child has recorded the marker only, and that is enough to end the child."""
    child = python(supervisor, SLEEPS)
    record_of(child, session=0, created=0).write(registry)
    assert reap_orphans(registry) == [f"old: ended process {child.pid}"]
    assert not runs(child.pid)


def test_foreign_files_in_the_registry_are_skipped(registry: Path) -> None:
    """A file that is not a record neither counts nor disturbs."""
    registry.mkdir()
    (registry / "a.b.json").write_text("{}")
    (registry / "c.d.json").write_text("not JSON")
    assert orphans(registry) == []


def test_output_of_a_tool() -> None:
    """Both outputs of a short tool are returned."""
    assert run_tool(["sh", "-c", "echo out; echo err >&2"]) == "out\nerr\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["no-such-command"], "no-such-command is not installed"),
        (["sh", "-c", "echo bad; exit 3"], "exit code 3\n    bad"),
        (["sleep", "600"], "sleep 600 did not end within 0.1 s"),
    ],
    ids=["missing", "failing", "hanging"],
)
def test_output_of_a_tool_that_fails(command: list[str], message: str) -> None:
    """A tool that is missing, fails or hangs is a ServiceError with the reason."""
    with pytest.raises(ServiceError, match=message):
        run_tool(command, timeout_s=0.1 if command[0] == "sleep" else 20)
