"""Ansible filters: of what stands in a cloud, what is the site's, and what stands in its way."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

NAMED = {"networks": "network", "routers": "router", "groups": "security group"}
MARKED = {"servers": "server", "volumes": "volume"}
Thing = Mapping[str, Any]


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"owned_by": owned_by, "cloud_conflicts": cloud_conflicts}


def owned_by(things: Sequence[Thing], site: str) -> list[Thing]:
    """Those that openstack.yml has made for a site: their description says so, or their metadata."""
    return [one for one in things if is_owned_by(one, site)]


def cloud_conflicts(found: Mapping[str, Sequence[Thing]], site: str, wanted: Sequence[str], *, state: str) -> list[str]:
    """Every reason to leave a cloud as it is, a sentence each; `found` is by kind, `wanted` are the names of the plan's servers."""
    return [
        *_of_others(found, site, wanted),
        *(_of_surplus(found["servers"], site, wanted) if state == "present" else ()),
    ]


def is_owned_by(one: Thing, site: str) -> bool:
    """Whether a thing has the site's mark, whatever its name is."""
    marks = (one.get("description"), (one.get("metadata") or {}).get("stream_bench_site"))
    return f"stream-bench site {site}" == marks[0] or site == marks[1]


def _of_others(found: Mapping[str, Sequence[Thing]], site: str, wanted: Sequence[str]) -> Iterator[str]:
    for key, kind in {**NAMED, **MARKED}.items():
        taken = [site] if key in NAMED else wanted
        for one in found[key]:
            if one["name"] in taken and not is_owned_by(one, site):
                yield f"{kind} {one['name']}: is there already, and not made for this site; remove it, or name the site otherwise"


def _of_surplus(servers: Sequence[Thing], site: str, wanted: Sequence[str]) -> Iterator[str]:
    for one in servers:
        if is_owned_by(one, site) and one["name"] not in wanted:
            yield (
                f"server {one['name']}: is the site's, but no longer asked for by openstack_groups;"
                f" remove it (openstack server delete {one['name']}), or ask for it"
            )
