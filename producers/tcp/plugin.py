"""The declaration of the source `tcp`."""

from functools import partial

from bench.plugins.plugin import SourcePlugin
from producers.tcp import sender
from producers.tcp.baselines import client_loop, discard
from producers.tcp.sender import TcpSender
from producers.tcp.site import TCP_SITE
from producers.tcp.source import TcpSettings, TcpSource

plugin = SourcePlugin(
    settings=TcpSettings,
    open=TcpSource,
    sender=TcpSender,
    site=TCP_SITE,
    baselines={"client-loop": client_loop, "client-loop-constant": partial(client_loop, stamped=False)},
    discard=discard,
    client_code=(sender,),
)
