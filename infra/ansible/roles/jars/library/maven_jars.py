#!/usr/bin/python
"""Ansible module: the jars of one set of a lock file, from a repository in Maven's layout, each checked by its SHA-256."""

from __future__ import annotations

import hashlib
import re
import shutil
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: maven_jars
short_description: The jars of one set of a lock file
description:
  - Makes a folder hold exactly the jars that a set of a lock file names, from a repository in Maven's layout.
options:
  lock: {description: Text of the lock file., type: str, required: true}
  set: {description: Name of the set., type: str, required: true}
  folder: {description: Where the jars lie afterwards., type: path, required: true}
  mirror: {description: The repository., type: str, required: true}
author: [stream-bench]
"""
EXAMPLES = """
- name: Bring Kafka
  maven_jars: {lock: "{{ text }}", set: kafka, folder: /opt/kafka, mirror: https://repo1.maven.org/maven2}
"""
RETURN = """
brought: {description: Jars that were downloaded., returned: always, type: list, elements: str}
removed: {description: Files that were not in the set., returned: always, type: list, elements: str}
"""

PIN = re.compile(r"^ +([\w.\-]+):([\w.\-]+):([\w.\-+]+)(?::([\w.\-]+))?: *([0-9a-f]{64}) *$")
"""group:artifact:version, or group:artifact:version:classifier, then the SHA-256."""
PATIENCE = 60.0
"""Seconds that the repository has for its next bytes."""


def main() -> None:
    """Compare, bring what is missing, remove what does not belong."""
    needed = {"type": "str", "required": True}
    module = AnsibleModule(
        {"lock": needed, "set": needed, "folder": {"type": "path", "required": True}, "mirror": needed},
        supports_check_mode=True,
    )
    asked = module.params
    pins = pinned(asked["lock"], asked["set"])
    if not pins:
        module.fail_json(msg=f"the lock file has no set {asked['set']!r}")
    folder = Path(asked["folder"])
    missing = {name: pin for name, pin in pins.items() if sha256_of(folder / name) != pin[1]}
    strange = sorted(path.name for path in folder.glob("*") if path.name not in pins)
    result = {"changed": bool(missing or strange), "brought": sorted(missing), "removed": strange}
    if module.check_mode or not result["changed"]:
        module.exit_json(**result)
    folder.mkdir(parents=True, exist_ok=True)
    for name in strange:
        (folder / name).unlink()
    with ThreadPoolExecutor(4) as pool:
        wrong = [
            said
            for said in pool.map(lambda name: bring(folder / name, *missing[name], asked["mirror"]), missing)
            if said
        ]
    if wrong:
        module.fail_json(msg=f"{wrong[0]}; {len(wrong)} of {len(missing)} jars could not be had")
    module.exit_json(**result)


def pinned(lock: str, wanted: str) -> dict[str, tuple[str, str]]:
    """By file name: the path in a repository and the SHA-256 of each jar of a set."""
    found, within = {}, False
    for line in lock.splitlines():
        if line and not line.startswith((" ", "#")):
            within = line.rstrip() == f"{wanted}:"
        elif within and (match := PIN.match(line)):
            group, artifact, version, classifier, sha256 = match.groups()
            name = f"{artifact}-{version}{'-' + classifier if classifier else ''}.jar"
            found[name] = (f"{group.replace('.', '/')}/{artifact}/{version}/{name}", sha256)
    return found


def bring(target: Path, path: str, sha256: str, mirror: str) -> str | None:
    """What went wrong, or None; the file has its name only when it is the one that was pinned."""
    url, part = f"{mirror.rstrip('/')}/{path}", target.with_suffix(".part")
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer, part.open("wb") as file:  # noqa: S310  the user names it
            shutil.copyfileobj(answer, file, 2**20)
    except (urllib.error.URLError, OSError) as problem:
        part.unlink(missing_ok=True)
        return f"{url}: {problem}"
    if (found := sha256_of(part)) != sha256:
        part.unlink()
        return f"{url} is not the pinned jar: its SHA-256 is {found}, expected {sha256}"
    part.chmod(0o644)
    part.rename(target)
    return None


def sha256_of(path: Path) -> str | None:
    """Of a file; None when there is none."""
    if not path.is_file():
        return None
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


if __name__ == "__main__":
    main()
