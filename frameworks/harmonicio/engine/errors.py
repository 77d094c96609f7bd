"""What can go wrong in HarmonicIO, and which exit code of the command it ends with."""


class HarmonicError(Exception):
    """Every failure that is foreseen; its text is one line that says what to do."""

    exit_code = 3


class ConfigError(HarmonicError):
    """The person can put it right: an option, a file, a name."""

    exit_code = 2


class WireError(HarmonicError):
    """What came over a connection is not what the protocol allows; the connection is closed, nothing else happens."""


class Refused(HarmonicError):
    """The other side understood and said no."""


class Unreachable(HarmonicError):
    """Nobody answers at an address."""
