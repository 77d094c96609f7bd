"""The administration interface of a Pulsar over HTTP: topics made and deleted, and their backlog."""

import http.client
import json
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from msgspec import Struct

from bench.errors import PluginError
from bench.services.credentials import read_secret
from producers.pulsar.site import PulsarSite

BROKERS_ASKED = 4
"""One after the other, for one request: each may say that another one has the topic now."""


class Backlog(Struct, frozen=True):
    """The unacknowledged part of a subscription: entries (batches, where the producer batches), and their bytes."""

    entries: int
    stored_bytes: int


class _Answer(NamedTuple):
    status: int
    text: str
    location: str
    """where else to ask; empty unless the status says so"""


class Admin:
    """A client of a Pulsar's administration.

    Each broker that is asked gets a connection of its own, which waits at most `seconds` for it.
    """

    def __init__(self, site: PulsarSite, *, seconds: float = 30) -> None:
        self._site, self._seconds = site, seconds

    def has_namespace(self) -> bool:
        """Return whether the namespace of the topics exists."""
        tenant, _, _ = self._site.namespace.partition("/")
        return tenant in self._request("GET", "tenants") and self._site.namespace in self._request(
            "GET", f"namespaces/{tenant}"
        )

    def make_topic(self, name: str, partitions: int) -> None:
        """Create a partitioned topic that did not exist before."""
        self._request("PUT", f"{self._path(name)}/partitions", partitions)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; its clients are disconnected."""
        self._request("DELETE", f"{self._path(name)}/partitions?force=true")

    def backlog(self, name: str, subscription: str) -> Backlog:
        """Return what the subscription has still to read, of all partitions."""
        stats = self._request(
            "GET", f"{self._path(name)}/partitioned-stats?getPreciseBacklog=true&subscriptionBacklogSize=true"
        )
        of = stats.get("subscriptions", {}).get(subscription, {})
        return Backlog(int(of.get("msgBacklog", 0)), max(0, int(of.get("backlogSize", 0))))

    def _path(self, name: str) -> str:
        return f"persistent/{self._site.namespace}/{quote(name, safe='')}"

    def _request(self, method: str, path: str, content: object = None) -> Any:
        """Return the answer to a request, of the broker that has the topic: another one says which that is.

        Raises PluginError with what the administration says where it refuses.
        """
        body = None if content is None else json.dumps(content)
        url = urlsplit(f"{self._site.admin_url.rstrip('/')}/admin/v2/{path}")
        for _ in range(BROKERS_ASKED):
            answer = self._ask(method, url, body)
            if answer.status != HTTPStatus.TEMPORARY_REDIRECT:
                break
            url = self._other_broker(answer.location)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            why = f"{url.scheme}://{url.netloc} refuses {method} {path}: {answer.status} {_reason(answer.text)}"
            raise PluginError("pulsar", "ask", why)
        return json.loads(answer.text) if answer.text else None

    def _ask(self, method: str, url: SplitResult, body: str | None) -> _Answer:
        target = f"{url.path}?{url.query}" if url.query else url.path
        try:
            connection = self._connection(url)
            try:
                connection.request(method, target, body, self._headers())
                response = connection.getresponse()
                text = response.read().decode(errors="replace")
                return _Answer(response.status, text, response.getheader("Location") or "")
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as problem:
            why = str(problem) or type(problem).__name__
            at = f"{url.scheme}://{url.netloc}"
            raise PluginError("pulsar", "ask", f"no answer from {at}: {why}") from problem

    def _other_broker(self, location: str) -> SplitResult:
        """Return where a broker sends us. The token goes there, too: only to one that is as well protected."""
        try:
            url = urlsplit(location)
            known = url.scheme == urlsplit(self._site.admin_url).scheme and bool(url.hostname) and url.port is not None
        except ValueError:
            known = False
        if not known:
            raise PluginError("pulsar", "ask", f"{self._site.admin_url} sends us to {location[:200]!r}: not followed")
        return url

    def _connection(self, url: SplitResult) -> http.client.HTTPConnection:
        host, port = url.hostname or "", url.port
        if url.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self._seconds)
        trusted = ssl.create_default_context(cafile=self._site.ca_file)
        return http.client.HTTPSConnection(host, port, timeout=self._seconds, context=trusted)

    def _headers(self) -> Mapping[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._site.token_file is not None:
            headers["Authorization"] = f"Bearer {read_secret(self._site.token_file)}"
        return headers


def _reason(text: str) -> str:
    try:
        return str(json.loads(text)["reason"])
    except (ValueError, KeyError, TypeError):
        return text[:200].strip()
