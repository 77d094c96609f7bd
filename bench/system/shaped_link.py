"""Run a command where loopback is a link of known bandwidth: in a network namespace of its own, with a token bucket (tc-tbf) on it.

    python -m bench.system.shaped_link "100 Mbit/s" bench run scenarios/known-link.yaml

Whatever is measured over that link has a ceiling that is known beforehand. Needs Linux, root, and Debian's iproute2.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from bench.errors import UsageError
from bench.units import Bandwidth

BURST_BYTES = 256 * 1024
"""More than one packet of loopback, which has up to 64 KiB; little beside what a trial moves."""
_INSIDE = 'ip link set lo up && tc qdisc add dev lo root tbf rate "$0" burst "$1" latency 100ms && shift && exec "$@"'


def command_for(bandwidth: Bandwidth, command: Sequence[str]) -> list[str]:
    """The command line that runs `command` behind such a link; UsageError where this machine cannot make one."""
    for tool in ("unshare", "ip", "tc"):
        if shutil.which(tool) is None:
            raise UsageError(f"a shaped link needs {tool}; run: apt-get install util-linux iproute2")
    rate, burst = f"{round(8 * bandwidth)}bit", str(BURST_BYTES)
    behind = ["unshare", "--net", "--", "sh", "-c", _INSIDE, rate, burst]
    run_trial = subprocess.run([*behind, "true"], capture_output=True, text=True, timeout=30, check=False)
    if run_trial.returncode != 0:
        raise UsageError(f"this machine does not allow a shaped link: {run_trial.stderr.strip().splitlines()[-1]}")
    return [*behind, *command]


def main(arguments: Sequence[str]) -> NoReturn:
    """Run `BANDWIDTH COMMAND...` in place of this process; exit code 2, and a line, where that cannot be."""
    try:
        command = _asked(arguments)
    except UsageError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(2)
    os.execvp(command[0], command)  # noqa: S606 a shell is what `command` begins with


def _asked(arguments: Sequence[str]) -> list[str]:
    if len(arguments) < 2:
        raise UsageError('found too little; allowed: python -m bench.system.shaped_link "100 Mbit/s" COMMAND...')
    try:
        bandwidth = Bandwidth.read(arguments[0])
    except ValueError as problem:
        raise UsageError(f"{arguments[0]}: found no bandwidth; allowed: {problem}") from None
    return command_for(bandwidth, arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
