"""Client settings of a secured Kafka, read from the site's files, in the names of each client library."""

from collections.abc import Mapping

from bench.services.credentials import read_secret, read_text
from producers.kafka.site import KafkaSecurity

Value = str | int | float | bool
_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'


def client_settings(security: KafkaSecurity | None) -> dict[str, Value]:
    """Return what an endpoint tells its clients: Java's names, and librdkafka's where those differ.

    Nothing where Kafka is open.

    Raises:
        SiteError: a file of the site cannot be read.
    """
    if security is None:
        return {}
    password = read_secret(security.password_file)
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (security.user, password))
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": _JAAS.format(*escaped),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": read_text(security.ca_file),
        "sasl.username": security.user,
        "sasl.password": password,
        "ssl.ca.location": security.ca_file,
    }


def for_librdkafka(client: Mapping[str, Value]) -> dict[str, Value]:
    """Return the part of an endpoint's client settings that confluent-kafka needs to be let in."""
    names = ("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location")
    return {name: client[name] for name in names if name in client}


def for_kafka_python(client: Mapping[str, Value]) -> dict[str, Value]:
    """Return the same for kafka-python."""
    names = {
        "security.protocol": "security_protocol",
        "sasl.mechanism": "sasl_mechanism",
        "sasl.username": "sasl_plain_username",
        "sasl.password": "sasl_plain_password",
        "ssl.ca.location": "ssl_cafile",
    }
    return {theirs: client[name] for name, theirs in names.items() if name in client}
