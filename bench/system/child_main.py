"""Main functions of child processes that get one command over their channel."""

import sys
from collections.abc import Callable
from types import UnionType
from typing import TypeVar, cast

from bench.errors import HarnessError
from bench.system.ipc import Channel, Failure

CommandT = TypeVar("CommandT")


def serve_command(
    commands: "type[CommandT] | UnionType", execute: Callable[[Channel[CommandT], CommandT], None]
) -> None:
    """Execute the one command that comes over the channel whose file number ends the command line.

    The process ends when `execute` returns or the harness closes the channel. A HarnessError is sent as a Failure, and
    the exit code is 1.

    Args:
        commands: the type of the command, or the union of its types.
        execute: gets the channel, for replies, and the command.
    """
    channel = Channel.inherited(int(sys.argv[-1]), cast("type[CommandT]", commands))
    try:
        (command,) = channel.receive()
        execute(channel, command)
    except (EOFError, OSError):
        return
    except HarnessError as problem:
        channel.send(Failure(str(problem)))
        sys.exit(1)
