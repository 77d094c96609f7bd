"""The options of the data source, and the client that they describe; README.md lists them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pulsar


@dataclass(frozen=True)
class PulsarSourceOptions:
    """The options of `.option(...)`, in Spark's spelling."""

    serviceUrl: str  # noqa: N815  Spark spells options so
    """pulsar://host:port or pulsar+ssl://host:port"""
    topic: str
    subscription: str = "spark"
    """durable; it keeps what is not read yet, so each query on a topic needs one of its own"""
    startingPositions: str = "latest"  # noqa: N815
    """latest, earliest, or JSON that gives each partition's position"""
    tokenFile: str = ""  # noqa: N815
    caFile: str = ""  # noqa: N815
    receiverQueueSize: int = 1000  # noqa: N815
    """messages that each task fetches ahead"""
    maxBatchBytes: int = 8_000_000  # noqa: N815
    maxBatchRows: int = 20_000  # noqa: N815
    """of one Arrow batch"""
    readTimeout: float = 60.0  # noqa: N815
    """seconds after which a message of a batch is not waited for any more, and the task fails"""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "PulsarSourceOptions":
        """Return the options that Spark hands over.

        Raises ValueError where one is unknown, missing or not a number.
        """
        known = {field.name.lower(): field for field in fields(cls)}
        unknown = [name for name in given if name.lower() not in known]
        if unknown:
            raise ValueError(
                f"unknown option {unknown[0]!r} of the format pulsar; there are"
                f" {', '.join(f.name for f in fields(cls))}"
            )
        texts = {known[name.lower()].name: text for name, text in given.items()}
        missing = [name for name in ("serviceUrl", "topic") if not texts.get(name)]
        if missing:
            raise ValueError(f"the format pulsar needs the option {missing[0]!r}")
        found = cls(**{name: _converted(name, text, type(getattr(cls, name, ""))) for name, text in texts.items()})
        for name in ("receiverQueueSize", "maxBatchBytes", "maxBatchRows", "readTimeout"):
            if not getattr(found, name) > 0:
                raise ValueError(f"the option {name!r} of the format pulsar must be above 0, not {texts[name]!r}")
        return found


def make_client(options: PulsarSourceOptions) -> pulsar.Client:
    """Return a client; it connects when it is first used."""
    token = pulsar.AuthenticationToken(lambda: _first_line(options.tokenFile))
    return pulsar.Client(
        options.serviceUrl,
        authentication=token if options.tokenFile else None,
        tls_trust_certs_file_path=options.caFile or None,
        tls_validate_hostname=options.serviceUrl.startswith("pulsar+ssl"),
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )


def _first_line(path: str) -> str:
    return Path(path).read_text(encoding="utf-8").partition("\n")[0].strip()


def _converted(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"the option {name!r} of the format pulsar is a number, not {text!r}") from None
