"""The administration interface of a Pulsar over HTTP: topics made and deleted, and their backlog."""

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import Struct

from bench.errors import PluginError
from bench.services.credentials import read_secret
from producers.pulsar.site import PulsarSite


class Backlog(Struct, frozen=True):
    """The unacknowledged part of a subscription: entries (batches, where the producer batches), and their bytes."""

    entries: int
    stored_bytes: int


class Admin:
    """A client of a Pulsar's administration; each request is a connection of its own and takes at most `seconds`."""

    def __init__(self, site: PulsarSite, *, seconds: float = 30) -> None:
        self._site, self._url, self._seconds = site, urlsplit(site.admin_url), seconds

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
        """Return the answer to a request. Raises PluginError with what the administration says where it refuses."""
        body = None if content is None else json.dumps(content)
        try:
            connection = self._connection()
            try:
                connection.request(method, f"{self._url.path.rstrip('/')}/admin/v2/{path}", body, self._headers())
                response = connection.getresponse()
                text = response.read().decode(errors="replace")
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as problem:
            why = str(problem) or type(problem).__name__
            raise PluginError("pulsar", "ask", f"no answer from {self._site.admin_url}: {why}") from problem
        if response.status >= 300:
            raise PluginError(
                "pulsar", "ask", f"{self._site.admin_url} refuses {method} {path}: {response.status} {_reason(text)}"
            )
        return json.loads(text) if text else None

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "http":
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
