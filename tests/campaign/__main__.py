"""A campaign against ourselves: faults over real runs, histories of HarmonicIO, and invented input for every reader.

    python -m tests.campaign run --hours 1 --seed 7
    python -m tests.campaign run --hours 1 --resume results/campaign-7-20261125T092000Z    # after an interrupt
    python -m tests.campaign run --faults 50 --seed 1 --subjects known history
    python -m tests.campaign fuzz frames --inputs 1000000 --seed 7 --seconds 170    # again, until all are done
    python -m tests.campaign report results/campaign-*/*.jsonl

As root, disks become full and read-only, and the network of HarmonicIO is cut, within namespaces of its own.
Exit code 1 if anything did not hold that must hold, or if an hour did not reach its bars.
"""

# ruff: noqa: T201  the progress and the tables are what it is for
import argparse
import logging
import math
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from tests.campaign import clocks, fuzzing, network, parts, report
from tests.campaign.campaign import UNLIMITED, Limits
from tests.campaign.outcomes import Log, bars_missed, read_log, summary, violations_of


def main() -> None:
    """Parse the command line, and do it; SIGTERM ends it as Ctrl-C does: nothing stays mounted or running."""
    signal.signal(signal.SIGTERM, _interrupt)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"), help="where the campaign's folder is made")
    verbs = parser.add_subparsers(required=True)
    attack = verbs.add_parser("run", help="attack runs and clusters")
    attack.add_argument("--hours", type=float, default=1.0, help="nothing begins later; those before --resume count")
    attack.add_argument("--attempts", type=int, default=UNLIMITED, help="so many runs and histories at most, each")
    attack.add_argument("--faults", type=int, default=UNLIMITED, help="no attempt begins after so many, each")
    attack.add_argument("--seed", type=int, default=1)
    attack.add_argument("--subjects", nargs="+", default=list(parts.SUBJECTS), choices=parts.SUBJECTS)
    attack.add_argument("--resume", type=Path, help="folder of a campaign that was interrupted")
    attack.set_defaults(run=run_campaign)
    part = verbs.add_parser("part", help="one part of a campaign, as `run` starts it")
    part.add_argument("name", choices=parts.NAMES)
    part.add_argument("folder", type=Path)
    part.set_defaults(run=run_part)
    fuzz = verbs.add_parser("fuzz", help="give invented input to a reader")
    fuzz.add_argument("target", choices=["all", *fuzzing.names()])
    fuzz.add_argument("--inputs", type=int, default=10_000)
    fuzz.add_argument("--seed", type=int, default=1)
    fuzz.add_argument("--seconds", type=float, default=math.inf, help="for each target; the next call goes on")
    fuzz.add_argument("--keep", action="store_true", help="save inputs that reach new places in the corpus")
    fuzz.set_defaults(run=run_fuzzing)
    page = verbs.add_parser("report", help="write the figures of logs into docs/reliability.md")
    page.add_argument("logs", nargs="+", type=Path)
    page.set_defaults(run=write_report)
    asked = parser.parse_args()
    run: Callable[[argparse.Namespace], bool] = asked.run
    try:
        sys.exit(0 if run(asked) else 1)
    except KeyboardInterrupt:
        sys.exit(130)


def _interrupt(*_: object) -> None:
    """Interrupt once: what ends the campaign may be asked for twice, and must not end what it cleans up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def run_campaign(asked: argparse.Namespace) -> bool:
    """Run the parts of a campaign side by side; return whether everything held, and an hour reached its bars."""
    limits = Limits(asked.hours * 3600, asked.attempts, asked.faults)
    if asked.resume is not None:
        folder = asked.resume
        plan = replace(parts.read_plan(folder), limits=limits)
    else:
        folder = asked.out / f"campaign-{asked.seed}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        plan = parts.CampaignPlan(asked.seed, tuple(asked.subjects), limits)
    for what, reason in (("the network", network.missing_reason()), ("a clock", clocks.missing_reason())):
        if reason is not None:
            print(f"{what} is not attacked: {reason}")
    try:
        held = parts.run(folder, plan, lambda text: print(text, flush=True))
    finally:  # also of an interrupted campaign
        records = parts.read_records(folder)
        print(f"\n{summary(records)}\n{folder}")
    whole = plan == parts.CampaignPlan(plan.seed, parts.SUBJECTS, Limits(limits.seconds)) and asked.hours >= 1
    below = bars_missed(records) if whole else []
    print("".join(f"below the bar: {text}\n" for text in below), end="")
    return held and not below


def run_part(asked: argparse.Namespace) -> bool:
    """Run one part in namespaces of its own; it is interrupted when standard input ends, with its parent."""
    network.enter(["-m", "tests.campaign", *sys.argv[1:]])
    parts.end_with_parent()
    return parts.run_part(asked.name, asked.folder, lambda text: print(text, flush=True))


def run_fuzzing(asked: argparse.Namespace) -> bool:
    """Give inputs to one target or all, and go on where the log ends; return whether all of them held."""
    logging.getLogger().addHandler(logging.NullHandler())  # warnings about the inputs are no news
    log, held = Log(asked.out / "fuzzing.jsonl"), True
    for name in fuzzing.names() if asked.target == "all" else [asked.target]:
        given, failures = 0, list[str]()
        for record in fuzzing.fuzz_on(name, asked.inputs, asked.seed, log, seconds=asked.seconds, keep=asked.keep):
            given, failures = given + record.inputs, [*failures, *record.violations]
            print(f"\r{name}: {given:,} inputs, {len(failures)} failures ", end="", flush=True)
        print("".join(f"\n    {text}" for text in failures))
        held &= not failures
    return held


def write_report(asked: argparse.Namespace) -> bool:
    """Write the figures into the page; return whether everything held."""
    records = [record for path in asked.logs for record in read_log(path)]
    report.write(summary(records))
    found = violations_of(records)
    print("\n".join([str(report.PAGE), *found]))
    return not found


if __name__ == "__main__":
    main()
