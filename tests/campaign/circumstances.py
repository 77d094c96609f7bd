"""Changes of what a run depends on: disk, files, limits, memory, network, clock and Java.

Each circumstance comes alone: the run goes on under it until bench ends; then it is put right, and the run is resumed
until it has ended.
"""

import resource
import time
from collections.abc import Callable, Mapping

from tests.campaign import clocks, damage, disks, invariants, network
from tests.campaign.attack import POLL_INTERVAL_S, AttackedRun
from tests.campaign.faults import Fault
from tests.cgroups import can_limit_memory, memory_cgroup

LARGE_DISK = "size=4g"
OF_NO_CELL = ("read only", "torn line", "edited file")
"""These concern no process of a cell."""


def attack_by_circumstance(run: AttackedRun, fault: Fault) -> list[str]:
    """Do a fault that is no signal, and return the violations."""
    if fault.kind not in OF_NO_CELL:
        run.add_hit(fault.victim)
    match fault.kind:
        case "disk full":
            size = int(2 ** (16 + 8 * fault.chance))
            with disks.mounted(run.results, size):
                run.note(fault, f"{size} bytes")
                return _run_until_end(run, fault) + _with_disk(run, LARGE_DISK, run.finish)
        case "read only":
            with disks.mounted(run.results, 2**32):
                found = _run_until_killed(run, fault)
                run.note(fault, "resumed on a read-only disk")
                found += _with_disk(run, "ro", lambda: _run_until_end(run, fault))
                return found + _with_disk(run, "rw", run.finish)
        case "torn line":
            found = _run_until_killed(run, fault) + _tear_line(run, fault)
        case "edited file":
            found = _run_until_killed(run, fault) + _edit_file(run, fault)
        case _:
            found = _RUNS[fault.kind](run, fault)
    return found + run.finish()


def _run_until_end(run: AttackedRun, fault: Fault) -> list[str]:
    run.start()
    return run.end(fault)


def _run_until_killed(run: AttackedRun, fault: Fault) -> list[str]:
    """Run until the moment of the fault, and kill the harness."""
    run.start()
    kill = Fault("kill", "harness", fault.after_s, fault.chance)
    run.send(kill)
    return run.end(kill)


def _with_disk(run: AttackedRun, options: str, act: Callable[[], list[str]]) -> list[str]:
    changed = disks.remount(run.results, options)
    return act() if changed else [f"the disk could not be mounted with {options}: a file is still open"]


def _run_with_full_data(run: AttackedRun, fault: Fault) -> list[str]:
    """Run with the data of embedded services, such as a broker's log, on a small disk of its own."""
    run.start()
    deadline = time.monotonic() + run.timeout_s
    while run.run_folder is None and not run.wait(POLL_INTERVAL_S) and time.monotonic() < deadline:
        pass
    if run.run_folder is not None:
        size = int(2 ** (20 + 6 * fault.chance))
        with disks.mounted(run.run_folder / "data", size):
            run.note(fault, f"{size} bytes")
            run.wait(run.timeout_s)  # `end` kills it
    return run.end(fault)


def _run_with_step(run: AttackedRun, fault: Fault) -> list[str]:
    """Run with a wall clock that steps at the moment of the fault, for bench and all that it starts."""
    clock, seconds = run.folder / "clock", clocks.STEPS_S[int(fault.chance * len(clocks.STEPS_S))]
    run.start(clocks.environment(clock))
    if not run.wait(fault.after_s):
        clocks.step(clock, seconds)
        run.note(fault, f"by {seconds} s")
    return run.end(fault)


def _run_with_broken_network(run: AttackedRun, fault: Fault) -> list[str]:
    """Break the way to one of the broker's ports at the moment of the fault, for a while."""
    run.start()
    target = run.wait_target(fault)
    ports = target.listening_ports() if target is not None else []
    if ports and network.is_own():
        port = ports[int(fault.chance * len(ports))]
        run.note(fault, f"port {port}")
        with network.broken(fault.kind, port):
            time.sleep(fault.held_s)
    return run.end(fault)


def _run_in_small_cgroup(run: AttackedRun, fault: Fault) -> list[str]:
    """Run where the kernel kills a process when the memory of all of them runs out."""
    if not can_limit_memory():
        return _run_until_end(run, fault)
    size = int((150 + 1200 * fault.chance) * 2**20)
    with memory_cgroup(size) as cgroup:
        run.note(fault, f"{size // 2**20} MiB")
        run.start(cgroup=cgroup)
        return run.end(fault)


def _run_with_limit(run: AttackedRun, fault: Fault) -> list[str]:
    if fault.kind == "few descriptors":
        limits: Mapping[int, int] = {resource.RLIMIT_NOFILE: 24 + int(200 * fault.chance)}
    else:
        limits = {resource.RLIMIT_AS: int((300 + 1500 * fault.chance) * 2**20)}
    run.note(fault, f"limit {next(iter(limits.values()))}")
    run.start(limits=limits)
    return run.end(fault)


def _run_with_other_java(run: AttackedRun, fault: Fault) -> list[str]:
    """Run as on a machine without Java, or with one that is too old."""
    folder = run.folder / "bin"
    folder.mkdir(exist_ok=True)
    if fault.kind == "old Java":
        java = folder / "java"
        java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.27\" 2025-04-15' >&2\n", encoding="utf-8")
        java.chmod(0o755)
    run.note(fault, str(folder))
    run.start({"PATH": f"{folder}:/nowhere", "JAVA_HOME": ""})
    return run.end(fault)


def _tear_line(run: AttackedRun, fault: Fault) -> list[str]:
    """Write a part of a line into the run folder; return what `bench` says wrongly of it."""
    there = run.run_folder
    if there is None:
        return []
    run.note(fault, damage.tear_line(there, fault.chance) or "no line yet")
    code, output = run.bench("report", str(there), "--format", "csv")
    read = [] if code in (0, *invariants.REFUSED) else [f"report: {invariants.last_line(output)}"]
    return read + run.verify(finished=False)


def _edit_file(run: AttackedRun, fault: Fault) -> list[str]:
    """Change a byte of a file of the run folder, and put it back; return whether `bench verify` did not name it."""
    there = run.run_folder
    edited = damage.edit_byte(there, fault.chance) if there is not None else None
    if there is None or edited is None:
        return []
    name, content = edited
    run.note(fault, name)
    code, output = run.bench("verify", str(there))
    (there / name).write_bytes(content)
    named = any(name in line for line in output.splitlines() if line.startswith("differs"))
    return [] if code == 4 and named else [f"verify did not name {name}: {code}, {invariants.last_line(output)}"]


_RUNS: Mapping[str, Callable[[AttackedRun, Fault], list[str]]] = {
    "data full": _run_with_full_data, "clock stepped": _run_with_step, "small cgroup": _run_in_small_cgroup,
    "cut": _run_with_broken_network, "halved": _run_with_broken_network, "slow": _run_with_broken_network,
    "few descriptors": _run_with_limit, "little memory": _run_with_limit,
    "no Java": _run_with_other_java, "old Java": _run_with_other_java,
}  # fmt: skip
