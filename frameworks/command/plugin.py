"""The declaration of the framework `command`: a program that the user brings."""

from bench.plugins.plugin import FrameworkCapabilities, FrameworkPlugin
from frameworks.command.adapter import CommandFramework, CommandSettings

plugin = FrameworkPlugin(
    settings=CommandSettings,
    open=CommandFramework,
    capabilities=FrameworkCapabilities(ordered=False, common_work=False),  # headers of several partitions come mixed
)
