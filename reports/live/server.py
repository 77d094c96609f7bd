"""A run as a live page while it goes on: read from its folder alone, served to this machine, over when the run is."""

import json
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bench.errors import SiteError, UsageError
from bench.plugins.plugin import ReportPlugin
from bench.storage.run_folder import read_run
from reports.formats.html_page import templates
from reports.live.snapshot import is_running, pulse_of

EVERY = 1.0
"""Seconds between two looks at whether the run goes on."""
GRACE = 3.0
"""Seconds that the last page stays, so that open pages learn that the run is over."""
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; frame-ancestors 'none'",
}


def serve(run: Path, *, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve the page until the run ends or the person stops it; UsageError when the folder is no run's."""
    record = read_run(run)
    title = record.scenario.title or record.scenario.name
    with _server(run, host, port, title) as server:
        address = f"[{host}]" if ":" in host else host
        say(f"http://{address}:{server.server_address[1]}/  (read-only; ends with the run, or with Ctrl-C)")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="watch", daemon=True)
        thread.start()
        try:
            _until_over(run)
        finally:
            server.shutdown()
            thread.join(timeout=5)
    say("the run is over; bench report shows it")


def _until_over(run: Path) -> None:
    """Wait until no harness has the folder any more."""
    pause = threading.Event()
    while is_running(run):
        pause.wait(EVERY)
    pause.wait(GRACE)


def _server(run: Path, host: str, port: int, title: str) -> ThreadingHTTPServer:
    page = templates().get_template("watch.html").render(title=title, name=run.name).encode()

    class Handler(Answer):
        folder, document = run, page

    try:
        ip_address(host)
    except ValueError:
        raise UsageError(
            f"--host {host}: is no IP address; allowed: 127.0.0.1 (this machine only), or another of its own"
        ) from None
    kind = type("Server", (ThreadingHTTPServer,), {"address_family": 10 if ":" in host else 2, "daemon_threads": True})
    try:
        server: ThreadingHTTPServer = kind((host, port), Handler)
    except (OSError, OverflowError) as problem:
        raise SiteError(f"{host} port {port}: cannot be listened on ({problem}); choose another with --port") from None
    return server


class Answer(BaseHTTPRequestHandler):
    """Two addresses, both only to be read: the page, and what it shows as JSON. Nothing of a request names a file."""

    folder: Path
    document: bytes
    timeout = 10
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "bench", ""

    def do_GET(self) -> None:
        """Answer the two addresses."""
        if not self._is_asked_rightly():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"ask by the address that bench watch named\n")
            return
        path = urlsplit(self.path).path
        if path == "/":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.document)
        elif path == "/pulse.json":
            self._send(HTTPStatus.OK, "application/json", _pulse(self.folder))
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is only /\n")

    do_HEAD = do_GET  # noqa: N815  the parent's names

    def _is_asked_rightly(self) -> bool:
        """Whether the request names an address and no foreign name: a page elsewhere cannot read us through its own name."""
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

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the parent's name
        """Say nothing; a person may read along in the terminal."""


def _pulse(run: Path) -> bytes:
    try:
        return msgspec.json.encode(pulse_of(run, running=is_running(run)))
    except UsageError as problem:
        return json.dumps({"trouble": str(problem)}).encode()


plugin = ReportPlugin(serve=serve)
