"""Client settings of a secured Kafka in the names of each client library.

An endpoint carries the paths of the site's files, never what is in them: it is sent to load generators on other hosts.
Each client reads the files where it runs.
"""

from collections.abc import Mapping

from bench.services.credentials import read_secret, read_text
from producers.kafka.site import KafkaSecurity

Value = str | int | float | bool


def client_settings(security: KafkaSecurity | None) -> dict[str, Value]:
    """Return the part of an endpoint that lets its clients in: a user and two paths; nothing where Kafka is open.

    Raises:
        SiteError: a file of the site cannot be read.
    """
    if security is None:
        return {}
    read_secret(security.password_file)
    read_text(security.ca_file)
    return {"user": security.user, "password_file": security.password_file, "ca_file": security.ca_file}


def for_librdkafka(client: Mapping[str, Value]) -> dict[str, Value]:
    """Return what confluent-kafka needs to be let in, with the password.

    Raises:
        SiteError: a file that the endpoint names cannot be read on this host.
    """
    if "password_file" not in client:
        return {}
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": client["user"],
        "sasl.password": read_secret(str(client["password_file"])),
        "ssl.ca.location": client["ca_file"],
    }


def for_kafka_python(client: Mapping[str, Value]) -> dict[str, Value]:
    """Return the same for kafka-python."""
    names = {
        "security.protocol": "security_protocol",
        "sasl.mechanism": "sasl_mechanism",
        "sasl.username": "sasl_plain_username",
        "sasl.password": "sasl_plain_password",
        "ssl.ca.location": "ssl_cafile",
    }
    return {names[name]: value for name, value in for_librdkafka(client).items()}
