#!/usr/bin/python
"""Ansible module that finds what somebody else has installed where stream-bench would install its own."""

from __future__ import annotations

import pwd
from collections.abc import Iterator, Sequence
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: find_conflicts
short_description: Finds units, accounts, folders and listening ports that stream-bench did not make
description:
  - Changes nothing. What stream-bench made is known by its records in /etc/stream-bench and by its file .stream-bench.
options:
  units:
    description: Names of systemd services, without .service.
    type: list
    elements: str
    default: []
  account:
    description: Name of the account of these services.
    type: str
    required: true
  folders:
    description: Folders for data and configuration. An empty one is no conflict.
    type: list
    elements: path
    default: []
  ports:
    description: TCP ports on which these services will listen.
    type: list
    elements: int
    default: []
author: stream-bench
"""
EXAMPLES = """
- name: Find what others installed
  find_conflicts:
    units: [kafka]
    account: kafka
    folders: [/var/lib/kafka, /etc/kafka]
    ports: [9092, 9093]
"""
RETURN = """
conflicts:
  description: One line for each thing that is not ours.
  type: list
  elements: str
  returned: always
"""

RECORDS = Path("/etc/stream-bench")
UNIT_FOLDERS = (Path("/etc/systemd/system"), Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
TCP_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"
"""State of a listening socket in the kernel's table of TCP sockets."""


def main() -> None:
    """Return the conflicts of one role on this host."""
    texts = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        {
            "units": texts,
            "account": {"type": "str", "required": True},
            "folders": {"type": "list", "elements": "path", "default": []},
            "ports": {"type": "list", "elements": "int", "default": []},
        },
        supports_check_mode=True,
    )
    given = module.params
    is_installed = any((RECORDS / "services" / f"{name}.json").exists() for name in given["units"])
    conflicts = [*foreign_units(given["units"]), *foreign_accounts(given["account"])]
    conflicts += foreign_folders(given["folders"], given["account"])
    if not is_installed:
        conflicts += taken_ports(given["ports"])
    module.exit_json(changed=False, conflicts=conflicts)


def foreign_units(names: Sequence[str]) -> Iterator[str]:
    """Yield a line for each unit that has no record of ours."""
    for name in names:
        found = next((folder for folder in UNIT_FOLDERS if (folder / f"{name}.service").exists()), None)
        if found is not None and not (RECORDS / "services" / f"{name}.json").exists():
            yield f"the unit {found / name}.service"


def foreign_accounts(name: str) -> Iterator[str]:
    """Yield a line if the account exists and has no record of ours."""
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        return
    if not (RECORDS / "accounts" / name).exists():
        yield f"the account {name} with the home {account.pw_dir}"


def foreign_folders(folders: Sequence[str], account: str) -> Iterator[str]:
    """Yield a line for each folder that holds files and is not ours."""
    record = RECORDS / "accounts" / account
    ours = record.read_text().strip() if record.exists() else None
    for folder in map(Path, folders):
        is_ours = any(str(one) == ours or (one / ".stream-bench").exists() for one in (folder, *folder.parents))
        if not is_ours and folder.is_dir() and any(entry.name != "lost+found" for entry in folder.iterdir()):
            yield f"the folder {folder} with files in it"


def taken_ports(ports: Sequence[int]) -> Iterator[str]:
    """Yield a line for each port on which something listens."""
    listening = {port for table in TCP_TABLES if table.exists() for port in listening_ports(table.read_text())}
    for port in ports:
        if port in listening:
            yield f"a program that listens on port {port}"


def listening_ports(table: str) -> Iterator[int]:
    """Yield the local port of each listening socket in the text of /proc/net/tcp."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 3 and fields[3] == LISTENING:
            yield int(fields[1].rpartition(":")[2], 16)


if __name__ == "__main__":
    main()
