"""A loopback link of known bandwidth: runs a command in a network namespace of its own, behind a token bucket (tc-tbf).

    python -m bench.system.shaped_link "100 Mbit/s" bench run scenarios/known-link.yaml

The throughput of anything measured over that link has a known upper bound. Needs Linux, root, and Debian's iproute2.
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
"""More than one packet of loopback (at most 64 KiB), and little compared with the bytes of a trial."""
_CHECK_TIMEOUT_S = 30
_INSIDE = 'ip link set lo up && tc qdisc add dev lo root tbf rate "$0" burst "$1" latency 100ms && shift && exec "$@"'


def command_for(bandwidth: Bandwidth, command: Sequence[str]) -> list[str]:
    """Return the command line that runs `command` behind such a link.

    Args:
        bandwidth: Of the link, in bytes/s.
        command: Program and arguments.

    Raises:
        UsageError: A tool is missing, or this machine does not allow a shaped link.
    """
    for tool in ("unshare", "ip", "tc"):
        if shutil.which(tool) is None:
            raise UsageError(f"a shaped link needs {tool}; run: apt-get install util-linux iproute2")
    rate, burst = f"{round(8 * bandwidth)}bit", str(BURST_BYTES)
    behind = ["unshare", "--net", "--", "sh", "-c", _INSIDE, rate, burst]
    check = subprocess.run([*behind, "true"], capture_output=True, text=True, timeout=_CHECK_TIMEOUT_S, check=False)
    if check.returncode != 0:
        raise UsageError(f"this machine does not allow a shaped link: {check.stderr.strip().splitlines()[-1]}")
    return [*behind, *command]


def main(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by `BANDWIDTH COMMAND...`; if that is impossible, write one line and exit with code 2."""
    try:
        command = _parse(arguments)
    except UsageError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(2)
    os.execvp(command[0], command)  # noqa: S606 a shell is what `command` begins with


def _parse(arguments: Sequence[str]) -> list[str]:
    if len(arguments) < 2:
        raise UsageError('found too few arguments; allowed: python -m bench.system.shaped_link "100 Mbit/s" COMMAND...')
    try:
        bandwidth = Bandwidth.read(arguments[0])
    except ValueError as problem:
        raise UsageError(f"{arguments[0]}: found no bandwidth; allowed: {problem}") from None
    return command_for(bandwidth, arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
