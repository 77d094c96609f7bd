"""The declaration of the framework `bytewax`."""

from bench.plugins.plugin import FrameworkPlugin
from frameworks.bytewax.adapter import ENVIRONMENT, BytewaxFramework, BytewaxSettings

plugin = FrameworkPlugin(
    settings=BytewaxSettings,
    open=BytewaxFramework,
    environment=ENVIRONMENT,
    readers=lambda settings, cores: settings.processes or cores,
    worker_setting="processes",
)
