"""Ansible filter that creates the signed token (JSON Web Token, HS256) of a Pulsar client."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable

DAY_S = 86_400
VALID_DAYS, STEP_DAYS = 365, 30
"""A token is valid for at least VALID_DAYS. Its end is a multiple of STEP_DAYS, so that playbooks that run within one
step create the same token; the first run in the next step renews it."""


class FilterModule:
    """The filter of this file, as Ansible loads it."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Return the filter by its name in templates."""
        return {"signed_token": signed_token}


def signed_token(subject: str, secret: str, now: float | None = None) -> str:
    """Return a token for a subject, signed with the bytes of the secret (RFC 7515, RFC 7519).

    Args:
        subject: name of the client.
        secret: at least 32 characters.
        now: Unix time in seconds; the present time when left out.
    """
    step = STEP_DAYS * DAY_S
    expires = (int(time.time() if now is None else now) // step + 1) * step + VALID_DAYS * DAY_S
    claims = {"sub": subject, "exp": expires}
    parts = [_encode(json.dumps(part, separators=(",", ":")).encode()) for part in ({"alg": "HS256"}, claims)]
    content = ".".join(parts)
    return f"{content}.{_encode(hmac.new(secret.encode(), content.encode(), hashlib.sha256).digest())}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
