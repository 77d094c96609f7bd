"""A wall clock that steps for some processes alone: a preloaded library adds seconds that stand in a file.

The machine's clock is never touched. Time that only grows (CLOCK_MONOTONIC) stays as it is.
"""

import shutil
import struct
import subprocess
from pathlib import Path

STEPS_S = (-30 * 86400, -3600, -2, 2, 3600, 30 * 86400)
"""A leap second and more, a wrong time zone, a battery that was empty."""
_SOURCE = Path(__file__).with_name("clock.c")
_SECONDS = struct.Struct("=q")


def missing_reason() -> str | None:
    """Return why no clock can step; None if one can."""
    return None if shutil.which("cc") is not None else "no C compiler (cc)"


def can_step() -> bool:
    """Return whether the library can be built here."""
    return missing_reason() is None


def environment(file: Path) -> dict[str, str]:
    """Return the variables of processes whose clock follows a file, which is made; without a step yet."""
    step(file, 0)
    library = file.with_suffix(".so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "CAMPAIGN_CLOCK": str(file)}


def step(file: Path, seconds: int) -> None:
    """Let the clocks that follow a file differ from the machine's by so much, from now on."""
    with file.open("r+b" if file.exists() else "wb", buffering=0) as opened:
        opened.write(_SECONDS.pack(seconds))
