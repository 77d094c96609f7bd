"""What the control planes of master and worker share: who may ask, how often, how large, and what goes wrong."""

import hashlib
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import unquote

from aiohttp import web
from aiohttp.typedefs import Middleware

from frameworks.harmonicio.engine.config import Tokens
from frameworks.harmonicio.engine.errors import HarmonicError, Refused, Unreachable, WireError

logger = logging.getLogger(__name__)

MAX_BODY = 2**20
NO_TOKEN = "Token is required."  # noqa: S105  a text of the old wire
_MAX_ADDRESSES, _MAX_HOST = 4096, 255
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def guarded(requests_per_second: int) -> list[Middleware]:
    """The middlewares of a control plane."""
    buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @web.middleware
    async def limited(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 429 to who asks too often: a bucket of two seconds' requests for each address."""
        now, who = time.monotonic(), request.remote or ""
        tokens, then = buckets.pop(who, (2.0 * requests_per_second, now))
        tokens = min(2.0 * requests_per_second, tokens + (now - then) * requests_per_second)
        buckets[who] = (max(0.0, tokens - 1), now)
        while len(buckets) > _MAX_ADDRESSES:
            buckets.popitem(last=False)
        if tokens < 1:
            return web.Response(status=429, text="too many requests")
        return await handler(request)

    @web.middleware
    async def told(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Errors that are foreseen become answers; no answer shows more than one line."""
        try:
            return await handler(request)
        except WireError as problem:
            return web.Response(status=400, text=str(problem))
        except Refused as problem:
            return web.Response(status=409, text=str(problem))
        except Unreachable as problem:
            return web.Response(status=502, text=str(problem))
        except HarmonicError as problem:
            return web.Response(status=500, text=str(problem))

    return [limited, told]


def require(request: web.Request, tokens: Tokens, roles: Sequence[str]) -> None:
    """Raise 401 unless the request shows the token of one of these roles; open only where none of them has a token."""
    wanted = [token for role in roles if (token := getattr(tokens, role))]
    shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if wanted and not any(_equal(shown, token) for token in wanted):
        raise web.HTTPUnauthorized(text=f"a token of {' or '.join(roles)} is needed")


def _equal(one: str, other: str) -> bool:
    """Whether two tokens are the same; takes the same time for all."""
    return hashlib.sha256(one.encode()).digest() == hashlib.sha256(other.encode()).digest()


def can_be_host(text: str) -> bool:
    """Whether a text can be an address or a name of a host; for others Python's resolver raises ValueError."""
    if not 0 < len(text) <= _MAX_HOST or not text.isprintable():
        return False
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return True


def raw_query(request: web.Request) -> dict[str, str]:
    """The query as old clients mean it: values may be unencoded, and a plus sign is a plus sign."""
    pairs = (part.partition("=") for part in request.rel_url.raw_query_string.split("&") if part)
    return {unquote(name): unquote(value) for name, _, value in pairs}


def text(body: str, status: int = 200, kind: str = "String") -> web.Response:
    """An answer with the content type that the old wire has."""
    return web.Response(status=status, body=body.encode(), headers={"Content-Type": kind})


def wrong_token(query: dict[str, str]) -> web.Response | None:
    """The answer to a request whose token is missing or not the old wire's constant."""
    if "token" not in query:
        return text(NO_TOKEN, 401)
    if query["token"] != "None":  # noqa: S105  the old wire's constant
        return text("Invalid token ID.", 401)
    return None


def loads() -> dict[str, str]:
    """The machine's load, as the old wire says it."""
    one, five, fifteen = os.getloadavg()
    return {"load1": f"{one:.2f}", "load5": f"{five:.2f}", "load15": f"{fifteen:.2f}"}
