"""Ansible filter: the token (JSON Web Token, HS256) that Pulsar's clients show."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[[str, str], str]]:
        return {"signed_token": signed_token}


def signed_token(subject: str, secret: str) -> str:
    """The token of a subject, signed with the bytes of a secret (RFC 7515, RFC 7519); it has no end."""
    parts = [_text(json.dumps(part, separators=(",", ":")).encode()) for part in ({"alg": "HS256"}, {"sub": subject})]
    signed = ".".join(parts)
    return f"{signed}.{_text(hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest())}"


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
