"""What can go wrong, and which exit code it ends with.

    HarnessError
      UsageError     the person can fix it: scenario, unknown room, missing extra      exit 2
      SiteError      a host, endpoint or version is not as the site file says          exit 3
      ServiceError   a process of ours or under test is not as it should be            exit 3
        NotReady     it did not answer its ready probe before the deadline
        Died         it ended by itself
      RoomError      a room failed at a verb                                           exit 3
      Impossible     a measurement that cannot be: an alarm, never a record            exit 3
      Interrupted    a run that somebody asked to stop; it can be gone on with         exit 130

Anything else that is raised is a bug: a traceback, and exit code 1. A message is one line: what
failed, with which values, and what to do next.
"""

from collections.abc import Sequence
from pathlib import Path


class HarnessError(Exception):
    """Every failure that the harness foresees."""

    exit_code = 3


class UsageError(HarnessError):
    """Something that the person at the keyboard can put right: a file, a name, an option, a missing extra."""

    exit_code = 2


class SiteError(HarnessError):
    """A host, an endpoint or a version is not as the site file says."""


class ServiceError(HarnessError):
    """A child process did not do its part; carries its log's path, and its last lines are in the message."""

    def __init__(self, message: str, log: Path | None = None, last_lines: Sequence[str] = ()) -> None:
        self.log = log
        where = f" (log: {log})" if log is not None else ""
        tail = "".join(f"\n    {line}" for line in last_lines)
        super().__init__(f"{message}{where}{tail}")


class NotReadyError(ServiceError):
    """A child process did not answer its ready probe before its deadline."""


class ProcessDiedError(ServiceError):
    """A child process ended that should have gone on."""


class PluginError(HarnessError):
    """A room failed at one of its verbs."""

    def __init__(self, room: str, verb: str, reason: str) -> None:
        self.room, self.verb = room, verb
        super().__init__(f"{room} failed to {verb}: {reason}")


class ImpossibleMeasurementError(HarnessError):
    """Figures of a trial contradict each other or theory; whatever measured them is wrong."""


class InterruptedRunError(HarnessError):
    """Somebody asked a run to stop; everything is stopped and what was measured is saved."""

    exit_code = 130
