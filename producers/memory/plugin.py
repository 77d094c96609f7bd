"""The declaration of the source `memory`."""

from bench.plugins.plugin import SourceCapabilities, SourcePlugin
from producers.memory import sender
from producers.memory.baselines import client_loop, discard
from producers.memory.sender import MemorySender
from producers.memory.source import MemorySettings, MemorySource

plugin = SourcePlugin(
    settings=MemorySettings,
    open=MemorySource,
    sender=MemorySender,
    capabilities=SourceCapabilities(single_writer=True, in_process=True),
    baselines={"client-loop": client_loop},
    discard=discard,
    client_code=(sender,),
)
