"""Facts about this machine and its software, saved with every run."""

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_COMMAND_TIMEOUT_S = 20
_BALLOON, _FREE_PAGE_REPORTING = 5, 5
PACKAGES = ("stream-bench", "numpy", "pyarrow", "matplotlib")
"""Distributions whose versions every run records, besides those that its plugins name."""


def describe(command: str, packages: Iterable[str] = ()) -> dict[str, Any]:
    """Return cores, memory (bytes), CPU, kernel, versions, the git revision, and `command`, which repeats the run.

    A value is None if it cannot be determined.
    """
    return {
        "cores": cores(),
        "memory_bytes": memory_bytes(),
        "memory_is_lent": memory_is_lent(),
        "cpu": _cpu_model(),
        "kernel": f"{platform.system()} {platform.release()}",
        "clock_source": _first_line(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        "python": platform.python_version(),
        "java": java_version(),
        "java_options": java_options(),
        "versions": versions(packages),
        "revision": revision(),
        "command": command,
    }


def find_change(facts: Mapping[str, Any]) -> str | None:
    """Return the first fact that results depend on and that differs from a run's recorded facts; None if all are equal.

    A Java that was or is not there, or could not be asked (with hardly any memory), is no other Java; a run records the
    first one that it knows of.

    Args:
        facts: The result of `describe` when the run began.
    """
    recorded = _relevant(facts)
    now: dict[str, Any] = {"cores": cores(), "cpu": _cpu_model(), "python": platform.python_version()}
    if recorded.keys() & _JAVA.keys():
        now |= {name: read() for name, read in _JAVA.items()}
    if None in (recorded.get("java"), now.get("java")):
        recorded.pop("java", None)
    present = now | versions(recorded)
    return next(
        (f"{name} {was}, not {present.get(name)}" for name, was in recorded.items() if present.get(name) != was), None
    )


def list_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return "name: a → b" for each fact that results depend on, where two runs recorded different values."""
    ours, theirs = _relevant(first), _relevant(second)
    return [f"{name}: {was} → {theirs[name]}" for name, was in ours.items() if theirs.get(name, was) != was]


def _relevant(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded facts that results depend on, by name."""
    machine = {name: facts[name] for name in ("cores", "cpu", "python", *_JAVA) if name in facts}
    versions = facts.get("versions")
    return {**machine, **(versions if isinstance(versions, Mapping) else {})}


def java_version() -> str | None:
    """Return the version that Java says of itself, of JAVA_HOME or else of the PATH; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    lines = _output_lines([str(Path(home, "bin", "java")) if home else "java", "-version"])
    return next((line for line in lines if " version " in line), None)  # others say which options it has picked up


def java_options() -> str | None:
    """Return the options that the environment gives to every Java; None without any."""
    options = (os.environ.get(name) for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"))
    return " ".join(filter(None, options)) or None


_JAVA: dict[str, Callable[[], str | None]] = {"java": java_version, "java_options": java_options}


def revision() -> str | None:
    """Return the git revision of this code; None if it does not lie in a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    return next(iter(_output_lines(command)), None)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def memory_bytes() -> int:
    """Return the bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_is_lent(devices: Path = Path("/sys/bus/virtio/devices")) -> bool:
    """Return True if a virtual machine's host takes back memory that is free, and lends it again when it is used.

    Source: Virtual I/O Device (VIRTIO) 1.2, section 5.5.3: feature 5 of a balloon (device 5), free page reporting.
    """
    kinds = {path.with_name("features"): int(path.read_text(encoding="ascii"), 16) for path in devices.glob("*/device")}
    return any(kind == _BALLOON and _reports_free_pages(features) for features, kind in kinds.items())


def core_numbers() -> list[int]:
    """Return the numbers of the cores that this process may use, in ascending order."""
    return sorted(os.sched_getaffinity(0))


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of the installed packages that a result depends on."""
    installed = {}
    for package in dict.fromkeys([*PACKAGES, *packages]):
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def free_bytes(folder: Path) -> int:
    """Return the free bytes of the file system that holds a folder, or would hold it."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    return shutil.disk_usage(existing).free


def _reports_free_pages(features: Path) -> bool:
    """Return the bit of free page reporting in a device's features, written as characters, bit 0 first."""
    return features.exists() and features.read_text(encoding="ascii")[_FREE_PAGE_REPORTING:][:1] == "1"


def _cpu_model() -> str | None:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _first_line(path: Path) -> str | None:
    return path.read_text().strip() if path.exists() else None


def _output_lines(command: list[str]) -> list[str]:
    """Return the lines of a command's output; none if it is not installed or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return (done.stdout or done.stderr).strip().splitlines()
