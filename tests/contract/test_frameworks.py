"""One suite for every installed framework: it processes each message of a source once, counts exactly, and closes at
any time.
"""

import time
from concurrent.futures import Future
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from bench.config.site import Site
from bench.errors import HarnessError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.placement import unreachable_reason
from bench.plugins.plugin import FrameworkPlugin, SourcePlugin
from bench.plugins.protocols import ElasticFramework
from bench.services.python_environments import missing_reason
from bench.workload.delivery_counts import DeliveryCounts, ProcessingReport
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor

SIZE, ENTROPY, COST = 1000, 0.5, 0.001
COUNT, RATE = 300, 300.0
DEADLINE = 120.0
QUIET_S = 0.5
"""For which nothing more must be reported after the last message."""
OTHER_READERS = ("flink/tcp", "flink/kafka")
"""Systems that are tested, too: the framework reads this source in another way than its cheapest one."""


def starts_servers(name):
    """Return whether a framework, or the source that it is tested with, starts servers."""
    framework, source_name = system_of(name)
    plugin, source = registry.framework_plugin(framework), registry.source_plugin(source_name)
    own = plugin.preflight is not FrameworkPlugin.preflight or plugin.site is not None
    return own or source.preflight is not SourcePlugin.preflight


def system_of(name):
    """Return the framework of a system and its source; the cheapest one where none is named."""
    framework, _, source = name.partition("/")
    return framework, source or cheapest_source(framework)


def cheapest_source(name):
    """Return the first source that a framework can read; one that needs nothing but this machine, if possible."""
    framework = registry.make_framework(name, {})
    sources = sorted(
        registry.names("sources"),
        key=lambda source: registry.source_plugin(source).preflight is not SourcePlugin.preflight,
    )
    for source in sources:
        cell = Cell(name, source, SIZE, COST)
        if (
            unreachable_reason(name, source, Site())
            or framework.unsupported_reason(cell, source)
            or registry.make_source(source, {}).unsupported_reason(cell, ENTROPY)
        ) is None:
            return source
    raise AssertionError(f"{name} can read no installed source")


FRAMEWORKS = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.real] if starts_servers(name) else [])
        for name in (*registry.names("frameworks"), *OTHER_READERS)
    ],
)


class LoadedFramework:
    """A framework that reads a source, and a load generator that writes to it."""

    def __init__(self, name, env):
        self.cell = Cell(*system_of(name), SIZE, COST)
        self.env, self.work = env, MessageProcessor(SIZE, ENTROPY)
        self.source = registry.make_source(self.cell.source, {})
        self.endpoint = self.source.open(self.cell, env)
        in_process = [
            one for one in registry.names("load_generators") if registry.load_generator_plugin(one).in_process
        ]
        self.load_generator = registry.load_generator_plugin(in_process[0]).open(self.endpoint, env, 1)
        self.frameworks = []

    @property
    def framework(self):
        """The framework that was opened last."""
        return self.frameworks[-1]

    def open_framework(self, endpoint=None):
        framework = registry.make_framework(self.cell.framework, {})
        self.frameworks.append(framework.open(self.cell, endpoint or self.endpoint, self.work, self.env))

    def counts(self, run, counts=None, condition=lambda: True):
        """Send a run's messages; return what is reported until a condition holds and it was quiet for a while.

        Messages that a restart processes again may be of an earlier run, and are not in the counts then.
        """
        self.load_generator.start(
            LoadSpec(
                run, RATE, time.monotonic() + 0.05, COUNT / RATE, message_bytes=SIZE, cpu_seconds=COST, entropy=ENTROPY
            )
        )
        counts, deadline, quiet_from = counts or DeliveryCounts(), time.monotonic() + DEADLINE, None
        while quiet_from is None or time.monotonic() < quiet_from + QUIET_S:
            assert time.monotonic() < deadline, f"{counts.count} of {COUNT} messages were processed"
            for report in self.framework.poll():
                assert report.run == run or report.restart or not report.count + report.corrupted
                if report.run == run or not report.restart:
                    counts.add(report)
            done = counts.count + counts.corrupted - counts.processed_again >= COUNT
            if quiet_from is None and done and condition():
                quiet_from = time.monotonic()
            self.load_generator.poll()
            time.sleep(0.01)
        return counts

    def read_until_it_fails(self, endpoint):
        """Open the framework at an endpoint, and send a run's messages."""
        self.open_framework(endpoint)
        self.counts(1)

    def close(self):
        for plugin in (*self.frameworks, self.load_generator, self.source):
            plugin.close()


@pytest.fixture
def system(env):
    """Opens the source and the load generator of a framework; everything is closed afterwards."""
    opened = []

    def make(name):
        skip_without_environment(name, env)
        opened.append(LoadedFramework(name, env))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def skip_without_environment(name, env):
    """Skip the test where the Python environment that a framework needs is not installed."""
    environment = registry.framework_plugin(system_of(name)[0]).environment
    if environment is not None and (reason := missing_reason(environment, env.cache)) is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def observe(env):
    """Returns what a framework reports before, in and after two runs; it is opened once for all who ask."""
    made = {}

    def ask(name):
        skip_without_environment(name, env)
        if name not in made:
            observed = Future()
            try:
                observed.set_result(observe_two_runs(name, env))
            except (Exception, pytest.fail.Exception) as problem:  # noqa: BLE001  all fail with it, after one deadline
                observed.set_exception(problem)
            made[name] = observed
        return made[name].result()

    return ask


class Observed(NamedTuple):
    """What a framework reported in its first poll, and its counts of each of two runs."""

    first_poll: list[ProcessingReport]
    counts: list[DeliveryCounts]


def observe_two_runs(name, env):
    """Open a framework, let it process two runs, one after the other, and close it."""
    running = LoadedFramework(name, env)
    try:
        running.open_framework()
        return Observed(list(running.framework.poll()), [running.counts(run) for run in (1, 2)])
    finally:
        running.close()


@FRAMEWORKS
def test_every_message_is_processed_once(observe, name):
    """The reports of two runs, one after the other, are exact: nothing is lost, repeated or damaged."""
    for counts in observe(name).counts:
        assert counts.reconcile({0: COUNT}) == (0, 0)
        assert (counts.count, counts.corrupted) == (COUNT, 0)


@FRAMEWORKS
def test_the_cpu_cost_is_spent_and_reported(observe, name):
    """The CPU time that the messages asked for is known exactly, and at least that was used."""
    for counts in observe(name).counts:
        assert counts.cpu_requested_s == pytest.approx(COUNT * COST)
        assert counts.cpu_used_s >= 0.99 * counts.cpu_requested_s


@FRAMEWORKS
def test_latencies_of_every_message_are_reported(observe, name):
    """There is one from its due time and one from when it was sent, none of them below zero."""
    for counts in observe(name).counts:
        assert counts.negative == 0
        assert counts.from_due.quantile(0.5) >= counts.from_sent.quantile(0.5) * 0.9 > 0


@FRAMEWORKS
def test_nothing_is_reported_where_nothing_was_sent(observe, name):
    """Polling does not wait for it."""
    assert [report for report in observe(name).first_poll if report.count + report.corrupted] == []


@FRAMEWORKS
def test_a_failed_open_leaves_nothing_behind(system, name, tmp_path, unused_address):
    """The failure is an error of the harness, and the next framework reads as if nothing had happened."""
    running = system(name)
    wrong = unused_address if running.cell.source == "tcp" else str(tmp_path / "missing")
    missing = replace(running.endpoint, address=wrong)
    with pytest.raises(HarnessError):
        running.read_until_it_fails(missing)
    assert [framework.close() for framework in running.frameworks] in ([], [None])
    again = system(name)
    again.open_framework()
    assert again.counts(2).reconcile({0: COUNT}) == (0, 0)


@FRAMEWORKS
def test_closing_twice_does_no_harm(system, name):
    """Whoever opens a framework closes it however it went."""
    running = system(name)
    running.open_framework()
    assert [running.framework.close(), running.framework.close()] == [None, None]


@pytest.mark.parametrize("name", registry.names("frameworks"))
@pytest.mark.parametrize("source", [*registry.names("sources"), "carrier-pigeon"])
def test_a_reason_is_none_or_a_sentence(name, source):
    """It is one line, short enough to be read beside the cell; nobody can read a source that does not exist."""
    reason = registry.make_framework(name, {}).unsupported_reason(Cell(name, source, SIZE, COST), source)
    if source == "carrier-pigeon":
        assert reason is not None
    if reason is not None:
        assert 10 < len(reason.strip()) < 300
        assert "\n" not in reason


@pytest.mark.parametrize("name", registry.names("frameworks"))
def test_the_batch_interval_is_known_before_anything_is_opened(name):
    """It is in seconds, 0 where the framework goes on continuously."""
    assert 0 <= registry.make_framework(name, {}).batch_interval < 3600


@FRAMEWORKS
def test_a_traced_framework_reports_spans(system, name):
    """They end within the run, and its messages are in spans of reading; the last ones are told with the next run."""
    if not registry.framework_plugin(system_of(name)[0]).capabilities.records_spans:
        pytest.skip(f"{name} records no spans")
    running, counts = system(name), [TracedCounts(), TracedCounts()]
    running.work = replace(running.work, traced=True)
    running.open_framework()
    begin = time.monotonic_ns()
    for run, one in enumerate(counts, start=1):
        assert running.counts(run, one).count == COUNT
    spans = [span for one in counts for span in one.spans if begin < span.end < time.monotonic_ns()]
    assert all(span.begin <= span.end for span in spans)
    assert {span.activity for span in spans} >= {"deserialize", "processing"}
    assert COUNT <= sum(span.messages for span in spans if span.activity == "deserialize") <= 2 * COUNT


@FRAMEWORKS
def test_workers_come_and_go_without_a_loss(system, name, env, monkeypatch):
    """Messages are processed while workers are added and while they end; only a restart may process some of them again.

    Counters say what workers do.
    """
    monkeypatch.setattr(env, "max_workers", 3)
    running = system(name)
    plugin = registry.framework_plugin(running.cell.framework)
    if plugin.elastic_sources is not None and running.cell.source not in plugin.elastic_sources:
        pytest.skip(f"workers come and go only with {', '.join(plugin.elastic_sources)}")
    if reason := plugin.not_elastic:
        assert "\n" not in reason
        running.open_framework()
        assert not isinstance(running.framework, ElasticFramework)
        return
    running.open_framework()
    elastic = running.framework
    assert isinstance(elastic, ElasticFramework)
    assert elastic.max_workers >= 3
    for run, workers in ((1, 3), (2, 1)):
        elastic.rescale(workers)
        counts = running.counts(run, condition=lambda workers=workers: len(elastic.workers()) == workers)
        assert counts.reconcile({0: COUNT}) == (0, 0)
    counts = running.counts(3, condition=lambda: sum(one.useful_s for one in elastic.workers()) > 0)
    assert (counts.reconcile({0: COUNT}), counts.processed_again) == ((0, 0), 0)


class TracedCounts(DeliveryCounts):
    """Counts that keep the spans of reports, too."""

    def __init__(self):
        super().__init__()
        self.spans = []

    def add(self, report):
        super().add(report)
        self.spans += report.trace.spans if report.trace is not None else []
