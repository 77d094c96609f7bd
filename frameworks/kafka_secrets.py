"""Settings with which Kafka's Java client is let in at a secured Kafka; for engines that read with that client."""

from collections.abc import Mapping

from bench.services.credentials import read_secret, read_text

_JAAS = '{} required username="{}" password="{}";'
_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def kafka_settings(
    client: Mapping[str, str | int | float | bool], *, login_module: str = _LOGIN_MODULE
) -> dict[str, str]:
    """Return the settings of Kafka's Java client for a secured endpoint; nothing where Kafka is open.

    Args:
        client: the endpoint's client settings; `user`, `password_file` and `ca_file` are read.
        login_module: the class of the client that logs in; a connector may have it under another name.

    Raises:
        SiteError: a file that the endpoint names cannot be read.
    """
    if "password_file" not in client:
        return {}
    named = (str(client["user"]), read_secret(str(client["password_file"])))
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"') for text in named)
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": _JAAS.format(login_module, *escaped),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": read_text(str(client["ca_file"])),
    }
