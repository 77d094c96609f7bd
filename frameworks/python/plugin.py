"""The declaration of the framework `python`: no framework at all."""

from bench.plugins.plugin import FrameworkPlugin
from frameworks.python.adapter import PythonFramework, PythonSettings

plugin = FrameworkPlugin(
    settings=PythonSettings,
    open=PythonFramework,
    readers=lambda settings, cores: settings.processes or cores,
    worker_setting="processes",
)
