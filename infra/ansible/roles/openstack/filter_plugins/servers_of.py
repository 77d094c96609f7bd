"""Ansible filter: from kinds of hosts with their numbers to single servers with their names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"servers_of": servers_of}


def servers_of(kinds: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """Each server of each kind: `name`, which is the site's, the kind's and a number; and `kind`, what its kind says."""
    return [
        {"name": f"{name}-{kind['name']}-{number}", "kind": dict(kind)}
        for kind in kinds
        for number in range(1, int(kind["count"]) + 1)
    ]
