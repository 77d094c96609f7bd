"""The declaration of the source `pulsar`."""

from collections.abc import Sequence
from pathlib import Path

from bench.analysis.bounds import Copies
from bench.config.site import Site
from bench.plugins.client_lint import ConfigWarning, warn_of_compression
from bench.plugins.placement import default_partitions
from bench.plugins.plugin import SourceCapabilities, SourcePlugin
from bench.services.preflight import missing_jars, missing_java
from producers.pulsar import sender
from producers.pulsar.sender import PulsarSender
from producers.pulsar.site import PULSAR_SITE
from producers.pulsar.source import PulsarSettings, PulsarSource


def missing(site: Site, cache: Path) -> Sequence[str]:
    """Return what the embedded server lacks here, a sentence each; nothing where the site has a Pulsar."""
    return () if PULSAR_SITE.read(site) is not None else (*missing_java(), *missing_jars(("pulsar",), cache))


def pulsar_copies(write_quorum: int, consumers: int = 1, bookies: int = 1, brokers: int = 1) -> Copies:
    """Return what Pulsar makes of each byte.

    It enters from the producer and leaves for each bookie of the quorum and each consumer; a bookie writes journal and
    ledger.
    """
    return Copies(network=(write_quorum + consumers) / brokers, disk=2 * write_quorum / bookies)


def copies(settings: PulsarSettings, site: Site) -> Copies | None:
    """Return what Pulsar makes of each byte that is read once; None where the site does not say who keeps a message."""
    there = PULSAR_SITE.read(site)
    if there is None:
        return pulsar_copies(settings.write_quorum, bookies=settings.bookies)
    if there.write_quorum is None or there.bookies is None:
        return None
    return pulsar_copies(there.write_quorum, bookies=there.bookies, brokers=len(there.brokers))


def warnings(settings: PulsarSettings, _message_bytes: int, entropy: float) -> list[ConfigWarning]:
    """Return what distorts a measurement in these settings, for messages of that entropy."""
    return list(warn_of_compression(settings.compression, entropy, "settings.pulsar.compression"))


plugin = SourcePlugin(
    settings=PulsarSettings,
    open=PulsarSource,
    sender=PulsarSender,
    capabilities=SourceCapabilities(retains_unread=True, keyed=True),
    site=PULSAR_SITE,
    preflight=missing,
    prepare=lambda settings, cell, env: PulsarSource(settings).prepare(cell, env),
    copies=copies,
    parts=lambda settings, cores: default_partitions(settings.partitions, cores),
    parts_setting="partitions",
    disk_copies=2,
    warnings=warnings,
    client_code=(sender,),
    packages=("pulsar-client",),
)
