"""Peers of 0.3.0, written from the reference: a connector, a PE, and a master."""

import ast
import hashlib
import http.client
import socket
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


def request(port, verb, path, body=None):
    """Send a request over its own connection; return (status, body)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(verb, path, body)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


def push_raw(host, port, data):
    """Send one message of the legacy protocol: open, send, close."""
    with socket.create_connection((host, port), timeout=10) as sock:
        sock.sendall(data)


def send_as_legacy_connector(port, c_name, message):
    """Send one message as the legacy connector does; return the role of its receiver, or the status."""
    digest = hashlib.md5(message, usedforsecurity=False).hexdigest()
    path = f"/streamRequest?token=None&c_name={c_name}&c_os=ubuntu&source=test&digest={digest}"
    status, text = request(port, "GET", path)
    if status != 200:
        return status
    place = ast.literal_eval(text.decode())
    head = f"{len(c_name):03d}{c_name}".encode() if place["node_role"] == 4 else b""
    push_raw(place["node_addr"], place["node_port"], head + message)
    return place["node_role"]


class LegacyPe:
    """A PE that registers, accepts one connection, reads to its end, and registers again; listen backlog 1."""

    def __init__(self, master_port, c_name):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        self._master_port, self._c_name = master_port, c_name
        self.received, self.registered = [], threading.Semaphore(0)
        self._over = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        self._over = True
        port = self._listener.getsockname()[1]
        push_raw("127.0.0.1", port, b"")
        self._thread.join(10)
        self._listener.close()

    def _serve(self):
        port = self._listener.getsockname()[1]
        path = f"/streamRequest?token=None&batch_addr=127.0.0.1&batch_port={port}&batch_status=0&c_name={self._c_name}"
        while not self._over:
            status, body = request(self._master_port, "POST", path)
            if status == 203 and body:
                self.received.append(body)
                continue
            self.registered.release()
            sock, _ = self._listener.accept()
            with sock:
                chunks = []
                while chunk := sock.recv(2048):
                    chunks.append(chunk)
            if chunks:
                self.received.append(b"".join(chunks))


class LegacyMaster:
    """A master of 0.3.0 with one idle list and one queue per image; it answers in Python literals."""

    def __init__(self):
        self.reports, self.idle, self.queue = [], [], []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(LegacyMasterRoutes, self))
        self.port = self._server.server_address[1]
        self._queue_listener = socket.create_server(("127.0.0.1", 0))
        self.queue_port = self._queue_listener.getsockname()[1]
        for target in (self._server.serve_forever, self._take_messages):
            threading.Thread(target=target, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._queue_listener.shutdown(socket.SHUT_RDWR)
        self._queue_listener.close()

    def _take_messages(self):
        while True:
            try:
                sock, _ = self._queue_listener.accept()
            except OSError:
                return
            with sock:
                chunks = []
                while chunk := sock.recv(65536):
                    chunks.append(chunk)
            data = b"".join(chunks)
            self.queue.append(data[3 + int(data[:3]) :])


class LegacyMasterRoutes(BaseHTTPRequestHandler):
    """The routes of the legacy master."""

    def __init__(self, master, *arguments):
        self._master = master
        super().__init__(*arguments)

    def log_message(self, *_):
        pass

    def do_PUT(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._master.reports.append(ast.literal_eval(text))
        self._answer(200, "Okay")

    def do_POST(self):
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if not self.path.startswith("/streamRequest"):
            self._answer(404, "")
        elif self._master.queue:
            self._answer(203, self._master.queue.pop(0))
        else:
            self._master.idle.append((query["batch_addr"], int(query["batch_port"]), query["c_name"]))
            self._answer(200, "No item in queue")

    def do_GET(self):
        if not self.path.startswith("/streamRequest"):
            self._answer(404, "")
        elif self._master.idle:
            host, port, _ = self._master.idle.pop(0)
            self._answer(200, {"node_addr": host, "node_port": port, "node_role": 2, "m_cmd": []})
        else:
            self._answer(
                200, {"node_addr": "127.0.0.1", "node_port": self._master.queue_port, "node_role": 4, "m_cmd": []}
            )

    def _answer(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else str(body).encode())
