"""What this machine and the software on it are: facts that are saved with every run."""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("stream-bench", "numpy", "pyarrow", "matplotlib")
"""Distributions whose versions every run records, besides those that its plugins name."""


def describe(command: str, packages: Iterable[str] = ()) -> dict[str, Any]:
    """Cores, memory, kernel, versions, the git revision and the command that repeats the run."""
    return {
        "cores": cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "cpu": _cpu_model(),
        "kernel": f"{platform.system()} {platform.release()}",
        "clock_source": _first_line(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        "python": platform.python_version(),
        "java": _said(["java", "-version"]),
        "versions": versions(packages),
        "revision": _said(["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]),
        "command": command,
    }


def changed(facts: Mapping[str, Any]) -> str | None:
    """What results depend on and is not as it was when these facts were noted, with what it was; None when all is."""
    now: dict[str, Any] = {"cores": cores(), "cpu": _cpu_model(), "python": platform.python_version()}
    known = {name: facts[name] for name in now if name in facts} | facts.get("versions", {})
    present = now | versions(known)
    return next(
        (f"{name} {was}, not {present.get(name)}" for name, was in known.items() if present.get(name) != was), None
    )


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def core_numbers() -> list[int]:
    """The numbers of those cores."""
    return sorted(os.sched_getaffinity(0))


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """The versions of the packages that a result depends on; what is not installed is left out."""
    found = {}
    for package in dict.fromkeys([*PACKAGES, *packages]):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def free_bytes(folder: Path) -> int:
    """Bytes that may still be written where a folder is, or would be."""
    deployed = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    return shutil.disk_usage(deployed).free


def _cpu_model() -> str | None:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _first_line(path: Path) -> str | None:
    return path.read_text().strip() if path.exists() else None


def _said(command: list[str]) -> str | None:
    """The first line of what a command says; None when it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return (done.stdout or done.stderr).strip().splitlines()[0] if (done.stdout or done.stderr).strip() else None
