"""The command `bench`: its verbs, and how it ends. The exit code says which kind of error it was (see bench.errors)."""

import errno
import signal
import sys
from typing import NoReturn

import typer

from bench.cli import (
    advise,
    calibrate,
    certify,
    check,
    clean,
    compare,
    doctor,
    plan,
    plugins,
    report,
    run,
    verify,
    watch,
    worker,
)
from bench.cli.output import complain
from bench.errors import HarnessError

app = typer.Typer(
    name="bench",
    help="Measure the maximum sustainable throughput of stream processing frameworks.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for register in (
    run,
    check,
    plan,
    plugins,
    report,
    watch,
    compare,
    advise,
    verify,
    calibrate,
    certify,
    doctor,
    worker,
    clean,
):
    register.register(app)


def main() -> NoReturn:
    """Run the command line."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False)
    except HarnessError as problem:
        complain(str(problem))
        sys.exit(problem.exit_code)
    except typer.Exit as ending:
        sys.exit(ending.exit_code)
    except Exception as problem:
        if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
            where = problem.filename or "nothing more can be written"
            complain(f"{problem.strerror}: {where}; free some space, then do it again")
            sys.exit(3)
        if type(problem).__module__.startswith(("click", "typer")) and hasattr(problem, "format_message"):
            complain(f"{problem.format_message()}; see bench --help")
            sys.exit(2)
        raise
    sys.exit(code or 0)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
