"""Secrets of a site as Spark takes them, and its Kafka's as Java clients do."""

import stat
from pathlib import Path

from frameworks.kafka_secrets import kafka_settings
from frameworks.spark import secrets


def test_a_secured_kafka_lets_java_in(tmp_path: Path) -> None:
    """Java's client gets the user, the password with its quotes escaped, and the certificate itself."""
    (tmp_path / "password").write_text('a "quoted" one\n')
    (tmp_path / "ca.crt").write_text("CERTIFICATE\n")
    client = {"user": "bench", "password_file": str(tmp_path / "password"), "ca_file": str(tmp_path / "ca.crt")}
    settings = kafka_settings(client)
    assert 'password="a \\"quoted\\" one";' in settings["sasl.jaas.config"]
    assert settings["ssl.truststore.certificates"] == "CERTIFICATE\n"


def test_an_open_kafka_needs_no_settings() -> None:
    """An endpoint without a password file is that of an open Kafka."""
    assert kafka_settings({"acks": 1}) == {}


def test_only_the_owner_can_read_the_secret_of_a_session(tmp_path: Path) -> None:
    """The file is never readable by others, not even while it is written."""
    (tmp_path / "password").write_text("secret=#! \\ ü\n")
    secrets.write_defaults(tmp_path, str(tmp_path / "password"))
    written = tmp_path / "spark-defaults.conf"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    escaped = r"secret\u003d\u0023\u0021\u0020\u005c\u0020\u00fc"
    assert written.read_text() == f"spark.authenticate.secret={escaped}\n"
