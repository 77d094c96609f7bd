"""The declaration of the framework `spark`."""

from collections.abc import Sequence
from pathlib import Path

from bench.config.site import Site
from bench.plugins.plugin import FILES_STAY, FrameworkCapabilities, FrameworkPlugin
from bench.services.preflight import missing_jars, missing_java
from frameworks.spark.adapter import CONNECTOR_JARS, SparkFramework, prepare
from frameworks.spark.conf import SparkSettings, deletes_files
from frameworks.spark.site import SPARK_SITE

WARM_UP_S = 30.0
"""Of a new session, for each source: what a map of ten minutes can pay for. The JVM goes on to become faster for one or
two minutes (docs/decisions/0207): the search expects that."""


def missing(_site: Site, cache: Path) -> Sequence[str]:
    """Return what Spark lacks here, a sentence each.

    Its driver runs on this machine also where the cluster is the site's.
    """
    return (*missing_java(), *missing_jars((CONNECTOR_JARS,), cache))


def max_receivers(settings: SparkSettings, source: str, site: Site) -> int | None:
    """Return how many receivers a cluster can have, since each occupies a core of it; None for any number."""
    spark = SPARK_SITE.read(site)
    cores = (spark.cores or site.cores) if spark is not None else None
    return max(1, cores - 1) if cores is not None and settings.reader(source) == "receiver" else None


def remark(settings: SparkSettings, source: str) -> str | None:
    """Return what a reader of results must know: whether a folder becomes fuller with time."""
    return FILES_STAY if source == "files" and not deletes_files(settings) else None


plugin = FrameworkPlugin(
    settings=SparkSettings,
    open=SparkFramework,
    capabilities=FrameworkCapabilities(warm_up_s=WARM_UP_S),
    readers=lambda settings, cores: settings.cores or cores,
    max_addresses=max_receivers,
    worker_setting="cores",
    interval_setting="batch_interval",
    not_elastic="a streaming query keeps the cores that its session began with: advice and restart only",
    site=SPARK_SITE,
    preflight=missing,
    prepare=prepare,
    remark=remark,
    packages=("pyspark",),
)
