"""The declaration of the framework `bytewax`."""

from bench.plugins.plugin import FrameworkCapabilities, FrameworkPlugin
from frameworks.bytewax.adapter import ENVIRONMENT, BytewaxFramework, BytewaxSettings

plugin = FrameworkPlugin(
    settings=BytewaxSettings,
    open=BytewaxFramework,
    capabilities=FrameworkCapabilities(warm_up_s=0.0),
    environment=ENVIRONMENT,
    readers=lambda settings, cores: settings.processes or cores,
    worker_setting="processes",
)
