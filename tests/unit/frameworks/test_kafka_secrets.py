"""Secrets of a site's Kafka as Java's clients take them."""

from pathlib import Path

from frameworks.kafka_secrets import kafka_settings


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
