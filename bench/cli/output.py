"""Standard output and standard error of the command."""

import os
import sys


def say(text: str) -> None:
    """Print a line of the command's outcome, at once; nothing more once nobody reads it."""
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the verb goes on, and ends with its own exit code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Print a line about something that is wrong."""
    print(text, file=sys.stderr)
