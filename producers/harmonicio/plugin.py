"""The declaration of the source `stream`."""

from bench.plugins.plugin import SourceCapabilities, SourcePlugin
from frameworks.harmonicio.site import HARMONICIO_SITE
from producers.harmonicio import sender
from producers.harmonicio.sender import StreamSender
from producers.harmonicio.source import StreamSettings, StreamSource

plugin = SourcePlugin(
    settings=StreamSettings,
    open=StreamSource,
    sender=StreamSender,
    capabilities=SourceCapabilities(),
    site=HARMONICIO_SITE,
    client_code=(sender,),
)
