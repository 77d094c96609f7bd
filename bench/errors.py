"""Exceptions that the harness foresees, and the exit codes of the command line.

    HarnessError                        base class                                                 exit 3
      UsageError                        the user can fix it: scenario, unknown plugin, extra       exit 2
      SiteError                         a host, endpoint or version is not as the site file says   exit 3
      ServiceError                      a child process did not do its part                        exit 3
        NotReadyError                   it did not answer its ready probe before the deadline      exit 3
        ProcessDiedError                it ended by itself                                         exit 3
      PluginError                       a plugin failed at a verb                                  exit 3
      ImpossibleMeasurementError        a measurement contradicts itself or theory                 exit 3
      InterruptedRunError               a run was asked to stop; it can be resumed                 exit 130

Any other exception is a bug: a traceback, and exit code 1. A message is one line: what failed, with which values, and
what to do next.
"""

from collections.abc import Sequence
from pathlib import Path


class HarnessError(Exception):
    """The base class of every failure that the harness foresees."""

    exit_code = 3


class UsageError(HarnessError):
    """A mistake that the user can fix: in a file, a name or an option, or a missing extra."""

    exit_code = 2


class SiteError(HarnessError):
    """A host, an endpoint or a version that is not as the site file says."""


class ServiceError(HarnessError):
    """A child process that did not do its part; the message ends with the last lines of its log."""

    def __init__(self, message: str, log: Path | None = None, last_lines: Sequence[str] = ()) -> None:
        self.log = log
        where = f" (log: {log})" if log is not None else ""
        tail = "".join(f"\n    {line}" for line in last_lines)
        super().__init__(f"{message}{where}{tail}")


class NotReadyError(ServiceError):
    """A child process that did not answer its ready probe before the deadline."""


class ProcessDiedError(ServiceError):
    """A child process that ended although it should have gone on."""


class PluginError(HarnessError):
    """A plugin that failed at one of its verbs."""

    def __init__(self, plugin: str, verb: str, reason: str) -> None:
        self.plugin, self.verb = plugin, verb
        super().__init__(f"{plugin} failed to {verb}: {reason}")


class ImpossibleMeasurementError(HarnessError):
    """A measurement that contradicts itself or theory: never a record, an error of the measuring."""


class InterruptedRunError(HarnessError):
    """A run that was asked to stop: everything is stopped, and the measurements are saved."""

    exit_code = 130
