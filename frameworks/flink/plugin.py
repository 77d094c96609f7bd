"""The declaration of the framework `flink`."""

from collections.abc import Sequence
from pathlib import Path

from bench.config.site import Site
from bench.plugins.plugin import FILES_STAY, FrameworkCapabilities, FrameworkPlugin
from bench.services.preflight import missing_jars, missing_java
from bench.services.python_environments import missing_reason
from frameworks.flink.adapter import FlinkFramework, prepare
from frameworks.flink.conf import FlinkSettings
from frameworks.flink.installation import CONNECTOR_JARS, ENVIRONMENT, JARS_LOCK
from frameworks.flink.site import FLINK_SITE

WARM_UP_S = 30.0
"""Of a new cluster, for each source: its JVM becomes faster as Spark's does (docs/decisions/0207)."""


def missing(_site: Site, cache: Path) -> Sequence[str]:
    """Return what Flink lacks here, a sentence each; nothing where it is not installed, which is said elsewhere."""
    if missing_reason(ENVIRONMENT, cache) is not None:
        return ()
    return (*missing_java(), *missing_jars((CONNECTOR_JARS,), cache, lock=JARS_LOCK))


plugin = FrameworkPlugin(
    settings=FlinkSettings,
    open=FlinkFramework,
    capabilities=FrameworkCapabilities(
        ordered=False,  # a subtask mixes the messages of its partitions
        text_only=("files",),
        warm_up_s=WARM_UP_S,
    ),
    environment=ENVIRONMENT,
    readers=lambda settings, cores: settings.cores or cores,
    worker_setting="cores",
    not_elastic="",
    elastic_sources=("kafka",),  # a restart reads from a checkpoint on, which a socket does not have
    site=FLINK_SITE,
    preflight=missing,
    prepare=prepare,
    remark=lambda _settings, source: FILES_STAY if source == "files" else None,
)
