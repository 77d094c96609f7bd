"""Ansible lookup that returns a random secret of the site, made on first use and kept on the controller."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: site_secret
short_description: A random secret of the site
description:
  - Each name has a file in the folder of the variable C(site_secrets), by default ~/.config/stream-bench/SITE/secrets,
    that only its owner can read. A missing file is made with 256 random bits; check mode makes no file.
options:
  _terms:
    description: Names of the secrets.
    required: true
author: stream-bench
"""
EXAMPLES = """
- name: Use the password of Kafka's clients
  vars:
    password: "{{ lookup('site_secret', 'kafka') }}"
"""
RETURN = """
_raw:
  description: One text of 43 characters for each name.
"""
IN_CHECK_MODE = "a-secret-that-check-mode-does-not-make-----"
"""Stands for a secret that no run has made yet."""


class LookupModule(LookupBase):
    """The lookup of this file, as Ansible loads it."""

    def run(self, terms: Sequence[str], variables: Mapping[str, Any] | None = None, **_: Any) -> list[str]:
        """Return the secret of each name."""
        known = variables or {}
        folder = self._templar.template(known.get("site_secrets") or "")
        if not folder:
            folder = f"~/.config/stream-bench/{self._templar.template(known['site_name'])}/secrets"
        is_check = bool(known.get("ansible_check_mode"))
        return [read_secret(Path(str(folder)).expanduser() / name, is_check=is_check) for name in terms]


def read_secret(path: Path, *, is_check: bool = False) -> str:
    """Return the secret in a file. A missing file is made, unless this is check mode.

    Raises:
        AnsibleError: the file cannot be read or made.
    """
    try:
        if not path.exists() and is_check:
            return IN_CHECK_MODE
        make_secret(path)
        return path.read_text().strip()
    except OSError as error:
        raise AnsibleError(f"the secret {path}: {error.strerror}") from error


def make_secret(path: Path) -> None:
    """Write a new secret, unless the file exists. Hosts that ask at the same time get the same secret."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text("")
    part.chmod(0o600)
    part.write_text(f"{secrets.token_urlsafe(32)}\n")
    try:
        os.link(part, path)
    except FileExistsError:
        pass
    finally:
        part.unlink()
