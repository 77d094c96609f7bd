#!/usr/bin/python
"""Ansible module that downloads the jars of one set of a lock file from a Maven repository and checks their SHA-256."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: maven_jars
short_description: Downloads the jars of one set of a lock file
description:
  - Downloads the jars that a set of a lock file names from a Maven repository.
  - Removes all other files from the folder.
options:
  lock: {description: Text of the lock file., type: str, required: true}
  set: {description: Name of the set., type: str, required: true}
  folder: {description: Folder for the jars., type: path, required: true}
  mirror: {description: URL of the Maven repository., type: str, required: true}
author: [stream-bench]
"""
EXAMPLES = """
- name: Download Kafka's jars
  maven_jars: {lock: "{{ text }}", set: kafka, folder: /opt/kafka, mirror: https://repo1.maven.org/maven2}
"""
RETURN = """
downloaded: {description: Names of the downloaded jars., returned: always, type: list, elements: str}
removed: {description: Names of removed files that are not in the set., returned: always, type: list, elements: str}
"""

PIN = re.compile(r"^ +([\w.\-]+):([\w.\-]+):([\w.\-+]+)(?::([\w.\-]+))?: *([0-9a-f]{64}) *$")
"""A line of the lock file: group:artifact:version or group:artifact:version:classifier, then the SHA-256."""
ATTEMPTS, PAUSE_S = 3, 2.0
"""How often a download is tried, and seconds after the first attempt; twice as long after the second."""
READ_TIMEOUT_S = 60.0
"""Time limit for the next bytes of the repository."""


def main() -> None:
    """Download missing or changed jars, and remove files that are not in the set."""
    text = {"type": "str", "required": True}
    module = AnsibleModule(
        {"lock": text, "set": text, "folder": {"type": "path", "required": True}, "mirror": text},
        supports_check_mode=True,
    )
    parameters = module.params
    pins = read_pins(parameters["lock"], parameters["set"])
    if not pins:
        module.fail_json(msg=f"the lock file has no set {parameters['set']!r}")
    folder = Path(parameters["folder"])
    missing = {name: pin for name, pin in pins.items() if sha256_of(folder / name) != pin[1]}
    surplus = sorted(path.name for path in folder.glob("*") if path.name not in pins and not path.is_dir())
    result = {"changed": bool(missing or surplus), "downloaded": sorted(missing), "removed": surplus}
    if module.check_mode or not result["changed"]:
        module.exit_json(**result)
    folder.mkdir(parents=True, exist_ok=True)
    for name in surplus:
        (folder / name).unlink()
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda name: download(folder / name, *missing[name], parameters["mirror"]), missing)
        errors = [error for error in results if error]
    if errors:
        module.fail_json(msg=f"{errors[0]}; {len(errors)} of {len(missing)} jars could not be downloaded")
    module.exit_json(**result)


def read_pins(lock: str, set_name: str) -> dict[str, tuple[str, str]]:
    """Return the path in a Maven repository and the SHA-256 of each jar of a set, by file name."""
    pins, in_set = {}, False
    for line in lock.splitlines():
        if line and not line.startswith((" ", "#")):
            in_set = line.rstrip() == f"{set_name}:"
        elif in_set and (match := PIN.match(line)):
            group, artifact, version, classifier, sha256 = match.groups()
            name = f"{artifact}-{version}{'-' + classifier if classifier else ''}.jar"
            pins[name] = (f"{group.replace('.', '/')}/{artifact}/{version}/{name}", sha256)
    return pins


def download(target: Path, path: str, sha256: str, mirror: str) -> str | None:
    """Download one jar and return an error message or None. The target is written only if the checksum is right."""
    url, part = f"{mirror.rstrip('/')}/{path}", target.with_suffix(".part")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(url, timeout=READ_TIMEOUT_S) as response, part.open("wb") as file:  # noqa: S310  the user names it
                shutil.copyfileobj(response, file, 2**20)
            break
        except (urllib.error.URLError, OSError) as problem:
            part.unlink(missing_ok=True)
            if attempt == ATTEMPTS:
                return f"{url}: {problem}"
            time.sleep(PAUSE_S * attempt)
    if (actual := sha256_of(part)) != sha256:
        part.unlink()
        return f"{url} is not the pinned jar: its SHA-256 is {actual}, expected {sha256}"
    part.chmod(0o644)
    part.rename(target)
    return None


def sha256_of(path: Path) -> str | None:
    """Return the SHA-256 of a file in hexadecimal digits, or None if it does not exist."""
    if not path.is_file():
        return None
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


if __name__ == "__main__":
    main()
