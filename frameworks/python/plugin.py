"""The declaration of the framework `python`: no framework at all."""

from bench.plugins.plugin import FrameworkCapabilities, FrameworkPlugin
from frameworks.python.adapter import PythonFramework, PythonSettings

plugin = FrameworkPlugin(
    settings=PythonSettings,
    open=PythonFramework,
    capabilities=FrameworkCapabilities(plain=True, warm_up_s=0.0),
    readers=lambda settings, cores: settings.processes or cores,
    worker_setting="processes",
)
