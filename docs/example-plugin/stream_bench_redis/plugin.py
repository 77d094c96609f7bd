"""The declarations of the source and consumer `redis-stream`, and of the framework `onethread`."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from bench.analysis.bounds import Copies
from bench.config.site import Site
from bench.plugins.client_lint import ConfigWarning
from bench.plugins.placement import default_partitions
from bench.plugins.plugin import (
    ConsumerPlugin,
    FrameworkCapabilities,
    FrameworkPlugin,
    SourceCapabilities,
    SourcePlugin,
)
from bench.units import size_text
from stream_bench_redis import client, sender
from stream_bench_redis.baselines import client_loop, discard
from stream_bench_redis.consumer import RedisConsumer
from stream_bench_redis.framework import OneThreadFramework, OneThreadSettings
from stream_bench_redis.sender import RedisSender
from stream_bench_redis.server import EXECUTABLE
from stream_bench_redis.site import REDIS_SITE
from stream_bench_redis.source import RedisSettings, RedisSource

MIN_RETAINED_MESSAGES = 20
"""With less space in the streams, sender and consumer wait for each other."""


def missing(site: Site, cache: Path) -> Sequence[str]:  # noqa: ARG001  nothing is downloaded
    """Return what the embedded Redis lacks here, a sentence each; nothing where the site has a Redis."""
    if REDIS_SITE.read(site) is not None or shutil.which(EXECUTABLE) is not None:
        return ()
    return (f"{EXECUTABLE} is not installed; run: apt-get install redis-server",)


def copies(settings: RedisSettings, site: Site) -> Copies:  # noqa: ARG001  the same for all
    """Return what Redis makes of each byte: it comes in once, goes out once, and is never written to a disk."""
    return Copies(network=1, disk=0)


def warnings(settings: RedisSettings, message_bytes: int, entropy: float) -> list[ConfigWarning]:  # noqa: ARG001  not compressed
    """Return what distorts a measurement in these settings, for messages of that size."""
    least = MIN_RETAINED_MESSAGES * message_bytes
    if settings.retained >= least:
        return []
    text = (
        f"settings.redis-stream.retained: {size_text(float(settings.retained))} are fewer than {MIN_RETAINED_MESSAGES}"
        f" messages of {size_text(message_bytes)}: sender and consumer wait for each other; give {size_text(least)}"
    )
    return [ConfigWarning(text)]


source = SourcePlugin(
    settings=RedisSettings,
    open=RedisSource,
    sender=RedisSender,
    capabilities=SourceCapabilities(retains_unread=True),
    site=REDIS_SITE,
    preflight=missing,
    copies=copies,
    parts=lambda settings, cores: default_partitions(settings.partitions, cores),
    parts_setting="partitions",
    warnings=warnings,
    baselines={"client-loop": client_loop},
    discard=discard,
    client_code=(sender, client),
    packages=("redis",),
)
consumer = ConsumerPlugin(open=RedisConsumer)
framework = FrameworkPlugin(
    settings=OneThreadSettings,
    open=OneThreadFramework,
    capabilities=FrameworkCapabilities(in_process=True, warm_up_s=0.0),
    readers=lambda _settings, _cores: 1,
)
