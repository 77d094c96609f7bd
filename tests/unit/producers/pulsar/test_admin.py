"""The admin interface of Pulsar."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench.errors import PluginError
from producers.pulsar.admin import Admin
from producers.pulsar.site import PulsarSite


def test_the_first_line_of_a_token_file_is_the_token(tmp_path: Path) -> None:
    """The rest of the file is not sent."""
    (tmp_path / "token").write_text(" the token \nand a note\n")
    site = PulsarSite("pulsar://b1:6650", "http://b1:8080", token_file=str(tmp_path / "token"))
    assert Admin(site)._headers()["Authorization"] == "Bearer the token"


class Broker(BaseHTTPRequestHandler):
    """Sends every request elsewhere, or answers it if there is no elsewhere."""

    elsewhere, asked = "", [""]

    def do_DELETE(self) -> None:
        """Answer a request to delete something."""
        self.asked.append(f"{self.path} {self.headers['Authorization']}")
        self.send_response(307 if self.elsewhere else 204)
        if self.elsewhere:
            self.send_header("Location", self.elsewhere + self.path)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def brokers() -> Iterator[list[type[Broker]]]:
    """Two servers, each as the class of its answers, whose `elsewhere` a test may set; `address` is where it is."""
    classes = [type("Broker", (Broker,), {"elsewhere": "", "asked": []}) for _ in range(2)]
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), answers) for answers in classes]
    for server, answers in zip(servers, classes, strict=True):
        answers.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield classes
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_broker_that_has_a_topic_is_asked(brokers: list[type[Broker]], tmp_path: Path) -> None:
    """A cluster of several brokers sends a client to the one that has the topic; three test hosts did."""
    first, second = brokers
    first.elsewhere = second.address
    (tmp_path / "token").write_text("T")
    Admin(PulsarSite("pulsar://b1:6650", first.address, token_file=str(tmp_path / "token"))).delete_topic("t")
    asked = "/admin/v2/persistent/public/default/t/partitions?force=true Bearer T"
    assert (first.asked, second.asked) == ([asked], [asked])


@pytest.mark.parametrize("elsewhere", ["https://127.0.0.1:1", "file:///etc", "http://[", "http://h:99999"])
def test_not_every_place_is_followed_to(brokers: list[type[Broker]], elsewhere: str) -> None:
    """The token is not sent there."""
    brokers[0].elsewhere = elsewhere
    with pytest.raises(PluginError, match="not followed"):
        Admin(PulsarSite("pulsar://b1:6650", brokers[0].address)).delete_topic("t")


def test_brokers_that_send_us_to_each_other_end_the_request(brokers: list[type[Broker]]) -> None:
    """A few of them are asked."""
    first, second = brokers
    first.elsewhere, second.elsewhere = second.address, first.address
    with pytest.raises(PluginError, match=r"refuses DELETE .* 307"):
        Admin(PulsarSite("pulsar://b1:6650", first.address)).delete_topic("t")
