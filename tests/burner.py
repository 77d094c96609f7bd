"""A seeded burner: bursts of CPU work on all cores that stand for a hypervisor that steals.

    python -m tests.burner --duty 0.1 --seed 1 --seconds 30

It runs at real-time priority where that is allowed, because a hypervisor does not ask the guest's scheduler.
"""

import argparse
import os
import random
import signal
import sys
import time
from contextlib import suppress
from multiprocessing import Process

MEAN_BURST_S = 0.05


def main() -> None:
    """Burn a share of the machine in bursts of random lengths, the same ones for the same seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duty", type=float, required=True, help="share of the machine, 0 to 0.9")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--burst", type=float, default=MEAN_BURST_S, help="mean length of a burst in seconds")
    parser.add_argument("--fair", action="store_true", help="normal priority: an ordinary process, not a hypervisor")
    asked = parser.parse_args()
    end = time.monotonic() + asked.seconds
    workers = [Process(target=_burn, args=(core, asked, end), daemon=True) for core in sorted(os.sched_getaffinity(0))]
    for worker in workers:
        worker.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # its workers are daemons and end with it
    for worker in workers:
        worker.join()


def _burn(core: int, asked: argparse.Namespace, end: float) -> None:
    """Burn one core in bursts; lengths and pauses are exponential."""
    os.sched_setaffinity(0, {core})
    if not asked.fair:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    chance = random.Random(f"{asked.seed} {core}")
    mean_pause = asked.burst * (1 / asked.duty - 1)
    while (now := time.monotonic()) < end:
        time.sleep(min(end - now, chance.expovariate(1 / mean_pause)))
        done = min(end, time.monotonic() + min(5 * asked.burst, chance.expovariate(1 / asked.burst)))
        while time.monotonic() < done:
            pass


if __name__ == "__main__":
    main()
