"""The command `bench`: its verbs, and how it ends. The exit code says which kind of error it was (see bench.errors)."""

import errno
import io
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
    explain,
    install,
    plan,
    plugins,
    report,
    run,
    verify,
    watch,
    worker,
)
from bench.cli.output import complain
from bench.errors import HarnessError, InterruptedRunError

_SYSTEM_ERRORS = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EROFS: "make it writable",
    errno.EACCES: "give this user the right to it",
    errno.EPERM: "give this user the right to it",
    errno.EIO: "look at the disk",
    errno.EISDIR: "put the file there that a run has",
    errno.ENOTDIR: "put the folder there that a run has",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the limit of open files (fs.file-max)",
    errno.ENOMEM: "free some memory",
}
"""What to do about errors of the system that are nobody's bug."""
_AGAIN_S = 0.05
"""After which a finalizer is over."""

app = typer.Typer(
    name="bench",
    help="Measure the maximum sustainable throughput of stream processing frameworks.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for register in (
    run, check, plan, plugins, report, explain, watch, compare, advise, verify, calibrate, certify, doctor, install,
    worker, clean,
):  # fmt: skip
    register.register(app)


def main() -> NoReturn:
    """Run the command line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # where the terminal has no such character
    try:
        catch_interrupts()
        code = app(standalone_mode=False)
    except HarnessError as problem:
        complain(str(problem))
        sys.exit(problem.exit_code)
    except typer.Exit as ending:
        sys.exit(ending.exit_code)
    except KeyboardInterrupt:  # before a verb has begun
        code = InterruptedRunError.exit_code
    except Exception as problem:
        if isinstance(problem, OSError) and problem.errno in _SYSTEM_ERRORS:
            where = f": {problem.filename}" if problem.filename else ""
            complain(f"{problem.strerror}{where}; {_SYSTEM_ERRORS[problem.errno]}, then do it again")
            sys.exit(3)
        if isinstance(problem, MemoryError):
            complain("there is not enough memory; end other programs or raise the limit (ulimit -v), then do it again")
            sys.exit(3)
        if type(problem).__module__.startswith(("click", "typer")) and hasattr(problem, "format_message"):
            complain(f"{problem.format_message()}; see bench --help")
            sys.exit(2)
        raise
    if code == InterruptedRunError.exit_code:  # what typer returns for an interrupt within a verb
        complain("interrupted")
    sys.exit(code or 0)


def catch_interrupts() -> None:
    """Let SIGTERM interrupt as Ctrl-C does, and let no interrupt get lost."""
    signal.signal(signal.SIGTERM, _interrupt)
    sys.unraisablehook = _interrupt_again


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _interrupt_again(ignored: "sys.UnraisableHookArgs") -> None:
    """Interrupt a second time after an interrupt within a finalizer, where Python ignores exceptions."""
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(ignored)
