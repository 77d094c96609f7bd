"""What a secured Kafka asks of its clients: read from the site's files once, said by the names of each client's library."""

from collections.abc import Mapping
from pathlib import Path

from bench.config.site import Security
from bench.errors import SiteError

Value = str | int | float | bool
_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'


def of_clients(security: Security | None) -> dict[str, Value]:
    """What an endpoint tells its clients: Java's names, and librdkafka's where those differ; nothing where it is open."""
    if security is None:
        return {}
    password = secret_in(security.password_file)
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": _JAAS.format(
            *(text.replace("\\", "\\\\").replace('"', '\\"') for text in (security.user, password))
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": text_of(security.ca_file),
        "sasl.username": security.user,
        "sasl.password": password,
        "ssl.ca.location": security.ca_file,
    }


def for_librdkafka(client: Mapping[str, Value]) -> dict[str, Value]:
    """The part of an endpoint's client settings that confluent-kafka needs to be let in."""
    names = ("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location")
    return {name: client[name] for name in names if name in client}


def for_kafka_python(client: Mapping[str, Value]) -> dict[str, Value]:
    """The same for kafka-python."""
    names = {
        "security.protocol": "security_protocol",
        "sasl.mechanism": "sasl_mechanism",
        "sasl.username": "sasl_plain_username",
        "sasl.password": "sasl_plain_password",
        "ssl.ca.location": "ssl_cafile",
    }
    return {theirs: client[name] for name, theirs in names.items() if name in client}


def secret_in(path: str) -> str:
    """The first line of a file; SiteError where it cannot be read or is empty."""
    lines = text_of(path).splitlines()
    if not lines or not lines[0].strip():
        raise SiteError(f"{path} is empty; its first line must be the secret")
    return lines[0].strip()


def text_of(path: str) -> str:
    """A whole file; SiteError where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SiteError(
            f"{path}, which the site file names, cannot be read: {getattr(problem, 'strerror', problem)}"
        ) from problem
