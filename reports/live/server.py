"""The live page of a running benchmark: read from its folder alone, served to this machine, until the run ends."""

import json
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bench.config.address import Address
from bench.errors import SiteError, UsageError
from bench.plugins.plugin import ReportPlugin
from bench.storage.folder_lock import is_running
from bench.storage.run_folder import read_run
from reports.formats.html_page import load_templates
from reports.live.snapshot import take_snapshot

CHECK_INTERVAL_S = 1.0
"""Between two checks that the run still goes on."""
FINAL_PAGE_S = 3.0
"""Time for which the last page is served, so that open pages learn that the run is over."""
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; frame-ancestors 'none'",
}


def serve(run: Path, *, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve the page until the run ends or the user stops it.

    Args:
        run: a run folder.
        host: the IP address to listen on.
        port: the port; 0 for a free one.
        say: called with each line for the user.

    Raises:
        UsageError: the folder is no run folder, or the host is no IP address.
        SiteError: the address cannot be listened on.
    """
    record = read_run(run)
    title = record.scenario.title or record.scenario.name
    with _open_server(run, host, port, title) as server:
        say(f"http://{Address(host, server.server_address[1])}/  (read-only; ends with the run, or with Ctrl-C)")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="watch", daemon=True)
        thread.start()
        try:
            _wait_until_over(run)
        finally:
            server.shutdown()
            thread.join(timeout=5)
    say("the run is over; bench report shows it")


def _wait_until_over(run: Path) -> None:
    """Wait until no harness has locked the folder."""
    pause = threading.Event()
    while is_running(run):
        pause.wait(CHECK_INTERVAL_S)
    pause.wait(FINAL_PAGE_S)


def _open_server(run: Path, host: str, port: int, title: str) -> ThreadingHTTPServer:
    page = load_templates().get_template("watch.html").render(title=title, name=run.name).encode()

    class Handler(RequestHandler):
        folder, document = run, page

    try:
        ip_address(host)
    except ValueError:
        raise UsageError(
            f"--host {host}: is no IP address; allowed: 127.0.0.1 (this machine only), or another of its addresses"
        ) from None
    kind = type("Server", (ThreadingHTTPServer,), {"address_family": 10 if ":" in host else 2, "daemon_threads": True})
    try:
        server: ThreadingHTTPServer = kind((host, port), Handler)
    except (OSError, OverflowError) as problem:
        raise SiteError(f"{host} port {port}: cannot be listened on ({problem}); choose another with --port") from None
    return server


class RequestHandler(BaseHTTPRequestHandler):
    """Handler of two read-only addresses: the page, and its data as JSON. No part of a request names a file."""

    folder: Path
    document: bytes
    timeout = 10
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "bench", ""

    def do_GET(self) -> None:
        """Send the page or its data."""
        if not self._has_local_host_header():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"use the address that bench watch printed\n")
            return
        path = urlsplit(self.path).path
        if path == "/":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.document)
        elif path == "/snapshot.json":
            self._send(HTTPStatus.OK, "application/json", _encode_snapshot(self.folder))
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is only /\n")

    do_HEAD = do_GET  # noqa: N815  names of the parent class

    def _has_local_host_header(self) -> bool:
        """Return True if the Host header is an IP address or localhost; this stops DNS rebinding by other pages."""
        host = self.headers.get("Host", "").rsplit(":", 1)[0].strip("[]")
        if host == "localhost":
            return True
        try:
            ip_address(host)
        except ValueError:
            return False
        return True

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  name of the parent class
        """Log nothing: the terminal belongs to the user."""


def _encode_snapshot(run: Path) -> bytes:
    try:
        return msgspec.json.encode(take_snapshot(run, running=is_running(run)))
    except UsageError as problem:
        return json.dumps({"error": str(problem)}).encode()


plugin = ReportPlugin(serve=serve)
