"""The declaration of the framework `command`: a program that the user brings."""

from bench.plugins.plugin import FrameworkCapabilities, FrameworkPlugin
from frameworks.command.adapter import CommandFramework, CommandSettings, fetch_jars
from frameworks.command.site import COMMAND_SITE

UNSEEN = (
    "The harness did not start the processes that do its work: their CPU time is not known, and other work on their"
    " machine is not told from it."
)

plugin = FrameworkPlugin(
    settings=CommandSettings,
    open=CommandFramework,
    capabilities=FrameworkCapabilities(ordered=False, records_spans=False),  # reports of several partitions come mixed
    max_addresses=lambda _settings, _source, _site: 1,  # docs/any-program.md promises that there is one
    readers=lambda settings, cores: settings.cores or cores,
    site=COMMAND_SITE,
    remark=lambda settings, _source: None if settings.is_seen else UNSEEN,
    unseen=lambda settings: not settings.is_seen,
    prepare=lambda settings, _cell, env: fetch_jars(settings, env),
)
