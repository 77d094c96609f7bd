"""The declaration of the framework `capacity`."""

from bench.plugins.plugin import FrameworkCapabilities, FrameworkPlugin
from frameworks.capacity.adapter import CapacityFramework, CapacitySettings

plugin = FrameworkPlugin(
    settings=CapacitySettings,
    open=CapacityFramework,
    capabilities=FrameworkCapabilities(in_process=True, warm_up_s=0.0),
    readers=lambda _settings, _cores: 1,
)
