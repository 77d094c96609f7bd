"""The declaration of the source `files`."""

from functools import partial

from bench.plugins.plugin import SourceCapabilities, SourcePlugin
from producers.files import sender
from producers.files.baselines import client_loop, discard
from producers.files.sender import FilesSender
from producers.files.site import FILES_SITE
from producers.files.source import FilesSettings, FilesSource

plugin = SourcePlugin(
    settings=FilesSettings,
    open=FilesSource,
    sender=FilesSender,
    capabilities=SourceCapabilities(),
    site=FILES_SITE,
    disk_copies=1,
    baselines={"client-loop": client_loop, "client-loop-constant": partial(client_loop, stamped=False)},
    discard=discard,
    client_code=(sender,),
)
