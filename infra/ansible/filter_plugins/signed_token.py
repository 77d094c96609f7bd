"""Ansible filter that creates the signed token (JSON Web Token, HS256) of a Pulsar client."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable


class FilterModule:
    """The filter of this file, as Ansible loads it."""

    def filters(self) -> dict[str, Callable[[str, str], str]]:
        """Return the filter by its name in templates."""
        return {"signed_token": signed_token}


def signed_token(subject: str, secret: str) -> str:
    """Return a token for a subject, signed with the bytes of the secret (RFC 7515, RFC 7519). It does not expire."""
    parts = [_encode(json.dumps(part, separators=(",", ":")).encode()) for part in ({"alg": "HS256"}, {"sub": subject})]
    content = ".".join(parts)
    return f"{content}.{_encode(hmac.new(secret.encode(), content.encode(), hashlib.sha256).digest())}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
