"""Parts of the HTTP control planes that master and worker share: addresses, rate limit, errors, tokens, and more."""

import logging
import os
import socket
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from secrets import compare_digest
from urllib.parse import unquote

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

from frameworks.harmonicio.engine.config import Tokens
from frameworks.harmonicio.engine.errors import HarmonicError, ProtocolError, RefusedError, UnreachableError

logger = logging.getLogger(__name__)
server_logger = logging.getLogger(f"{__name__}.server")
"""For aiohttp's own lines."""

MAX_BODY = 2**20
NO_TOKEN = "Token is required."  # noqa: S105  an answer of the legacy protocol
_MAX_ADDRESSES, _MAX_HOST_CHARACTERS, _MAX_REASON_CHARACTERS = 4096, 255, 120
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _shorten_client_error(record: logging.LogRecord) -> bool:
    """Make one line of what a client did wrong; aiohttp logs it as an error of the server, with its traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError | ConnectionError):
        reason = " ".join(str(error).split())[:_MAX_REASON_CHARACTERS]
        record.msg, record.args, record.exc_info = "a request was refused: %s", (reason,), None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    return True


server_logger.addFilter(_shorten_client_error)


def middlewares(requests_per_second: int) -> list[Middleware]:
    """Return the middlewares of a control plane; the limit is per address of a client."""
    buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @web.middleware
    async def limit_rate(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 429 above the rate limit: each address has a bucket of two seconds' requests."""
        now, address = time.monotonic(), request.remote or ""
        tokens, updated = buckets.pop(address, (2.0 * requests_per_second, now))
        tokens = min(2.0 * requests_per_second, tokens + (now - updated) * requests_per_second)
        buckets[address] = (max(0.0, tokens - 1), now)
        while len(buckets) > _MAX_ADDRESSES:
            buckets.popitem(last=False)
        if tokens < 1:
            return web.Response(status=429, text="too many requests")
        return await handler(request)

    @web.middleware
    async def convert_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Convert expected errors into answers of one line."""
        try:
            return await handler(request)
        except ProtocolError as error:
            return web.Response(status=400, text=str(error))
        except RefusedError as error:
            return web.Response(status=409, text=str(error))
        except UnreachableError as error:
            return web.Response(status=502, text=str(error))
        except HarmonicError as error:
            return web.Response(status=500, text=str(error))

    return [limit_rate, convert_errors]


def require(request: web.Request, tokens: Tokens, roles: Sequence[str]) -> None:
    """Raise HTTP 401 unless the request has the token of one of the roles; pass where none of them has a token.

    Args:
        request: its `Authorization: Bearer` header has the token.
        tokens: of this master or worker.
        roles: fields of Tokens.

    Raises:
        web.HTTPUnauthorized: the token is missing or wrong.
    """
    accepted = [token for role in roles if (token := getattr(tokens, role))]
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if accepted and not any(_equal(given, token) for token in accepted):
        raise web.HTTPUnauthorized(text=f"a token of {' or '.join(roles)} is needed")


def _equal(given: str, token: str) -> bool:
    """Return whether a given text, of whatever bytes, is a token; in constant time."""
    return compare_digest(given.encode(errors="surrogateescape"), token.encode())


def address_family(host: str) -> socket.AddressFamily:
    """Return the family of the socket that listens at a host address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def base_url(host: str, port: int, *, tls: bool) -> str:
    """Return the URL of a control plane, without a path; an IPv6 address gets its brackets."""
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def can_be_host(text: str) -> bool:
    """Return whether a text can be a host address or name; for others Python's resolver raises ValueError."""
    if not 0 < len(text) <= _MAX_HOST_CHARACTERS or not text.isprintable():
        return False
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return True


def raw_query(request: web.Request) -> dict[str, str]:
    """Return the query as legacy clients mean it: values may be unencoded, and a plus sign is a plus sign."""
    pairs = (part.partition("=") for part in request.rel_url.raw_query_string.split("&") if part)
    return {unquote(name): unquote(value) for name, _, value in pairs}


def text(body: str, status: int = 200, kind: str = "String") -> web.Response:
    """Return an answer with a content type of the legacy protocol."""
    return web.Response(status=status, body=body.encode(), headers={"Content-Type": kind})


def wrong_token(query: dict[str, str]) -> web.Response | None:
    """Return the answer to a request whose token is missing or not the legacy constant; None when it is right."""
    if "token" not in query:
        return text(NO_TOKEN, 401)
    if query["token"] != "None":  # noqa: S105  the legacy constant
        return text("Invalid token ID.", 401)
    return None


def load_averages() -> dict[str, str]:
    """Return the load averages of this machine in the legacy format."""
    one, five, fifteen = os.getloadavg()
    return {"load1": f"{one:.2f}", "load5": f"{five:.2f}", "load15": f"{fifteen:.2f}"}
