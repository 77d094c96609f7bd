"""The declaration of the framework `harmonicio`."""

from bench.plugins.plugin import FrameworkCapabilities, FrameworkPlugin
from frameworks.harmonicio.adapter import HarmonicioFramework, HarmonicioSettings
from frameworks.harmonicio.cluster import cluster_of
from frameworks.harmonicio.site import HARMONICIO_SITE

plugin = FrameworkPlugin(
    settings=HarmonicioSettings,
    open=HarmonicioFramework,
    capabilities=FrameworkCapabilities(ordered=False, warm_up_s=0.0),  # bridges read one part after another
    readers=lambda settings, _cores: settings.bridges,
    worker_setting="pes",
    not_elastic="",
    site=HARMONICIO_SITE,
    prepare=lambda _settings, _cell, env: cluster_of(env),
)
