"""The declarations of the load generators `locust` and `inline`."""

from bench.plugins.plugin import LoadGeneratorPlugin
from producers.load.inline import InlineLoadGenerator
from producers.load.locust import LocustLoadGenerator, join_run, locust_process

locust = LoadGeneratorPlugin(
    open=LocustLoadGenerator, default=True, prepare=locust_process, join=join_run, packages=("locust",)
)
inline = LoadGeneratorPlugin(open=InlineLoadGenerator, in_process=True)
