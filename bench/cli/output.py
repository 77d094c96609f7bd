"""Standard output and standard error of the command."""

import sys


def say(text: str) -> None:
    """Print a line of the command's outcome, at once."""
    print(text, flush=True)


def complain(text: str) -> None:
    """Print a line about something that is wrong."""
    print(text, file=sys.stderr)
