"""The admin interface of Pulsar."""

from pathlib import Path

from producers.pulsar.admin import Admin
from producers.pulsar.site import PulsarSite


def test_the_first_line_of_a_token_file_is_the_token(tmp_path: Path) -> None:
    """The rest of the file is not sent."""
    (tmp_path / "token").write_text(" the token \nand a note\n")
    site = PulsarSite("pulsar://b1:6650", "http://b1:8080", token_file=str(tmp_path / "token"))
    assert Admin(site)._headers()["Authorization"] == "Bearer the token"
