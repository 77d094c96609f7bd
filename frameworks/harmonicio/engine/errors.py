"""The errors of HarmonicIO and the exit codes that the command ends with."""


class HarmonicError(Exception):
    """The base of all expected errors; its text is one line that says what to do."""

    exit_code = 3


class ConfigError(HarmonicError):
    """A wrong option, file or name, which the user can correct."""

    exit_code = 2


class ProtocolError(HarmonicError):
    """Data of a connection that the protocol does not allow; only that connection is closed."""


class RefusedError(HarmonicError):
    """A request that the other side understood and refused."""


class MessageTooLongError(RefusedError):
    """A message that is longer than every receiver accepts."""


class UnreachableError(HarmonicError):
    """An address at which nothing answers."""
