"""The declaration of the framework `command`: a program that the user brings."""

from bench.plugins.plugin import FrameworkCapabilities, FrameworkPlugin
from frameworks.command.adapter import CommandFramework, CommandSettings, fetch_jars

plugin = FrameworkPlugin(
    settings=CommandSettings,
    open=CommandFramework,
    capabilities=FrameworkCapabilities(ordered=False, records_spans=False),  # reports of several partitions come mixed
    max_addresses=lambda _settings, _source, _site: 1,  # docs/any-program.md promises that there is one
    readers=lambda settings, cores: settings.cores or cores,
    prepare=lambda settings, _cell, env: fetch_jars(settings, env),
)
