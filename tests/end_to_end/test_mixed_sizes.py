"""Cells whose messages differ in size, or have keys, are measured like any other, and every message is verified."""

import pytest
from uncalibrated import Uncalibrated

from bench.analysis import foreign_work, late_generator
from bench.cli.terminal import ignore
from bench.config.site import Site
from bench.config.validation import apply_changes, parse_scenario
from bench.config.yaml_document import Document
from bench.model.message_sizes import Sizes
from bench.runner.run import RunOptions, run
from bench.storage.run_folder import RunFolder, read_results, read_run, read_trials
from producers.kafka.site import KafkaSite

CHOICE = Sizes(choice=((100, 0.9), (10_000, 0.1)))
MEMORY = ["systems=capacity/memory", "load.by=inline", "settings.capacity.ceiling=4 k/s", "search.highest=1 M/s"]
WRITTEN = {
    "name": "mixed",
    "systems": ["python/kafka"],
    "grid": {"message_size": [{"choice": {"100 B": 0.9, "10 kB": 0.1}}]},
    "search": {"start": "2 k/s", "lowest": "1.9 k/s", "highest": "2 k/s", "precision": "20 %", "budget": "6 s"},
    "timing": {"settle": "0.5 s", "window": "1 s"},
}


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """Runs the scenario with changes on a machine whose other work is no matter; the run's folder."""
    monkeypatch.setattr(foreign_work, "LOSS_FACTOR", 0.0)
    monkeypatch.setattr(late_generator, "STALL_FACTOR", 0.0)

    def go(*changes, **sections):
        scenario = parse_scenario(apply_changes(Document("test", WRITTEN), changes))
        store = RunFolder.create(tmp_path, "mixed")
        options = RunOptions("bench run", tmp_path / "cache", tmp_path / "children", backend=Uncalibrated)
        run(scenario, Site(sections=sections), store, ignore, options)
        return store.folder

    return go


def exact(folder):
    """Return whether every message of every drained trial was processed once, whole and in order."""
    trials = [entry.measurement for entry in read_trials(folder) if entry.measurement.drained]
    assert trials
    assert all(seen.processed == seen.sent > 0 for seen in trials)
    return all(seen.lost == seen.duplicated == seen.corrupted == seen.out_of_order == 0 for seen in trials)


def test_a_cell_of_mixed_sizes_is_measured(ran):
    """Its result says the mean and the distribution, and stands for the scenario's cell."""
    folder = ran(*MEMORY)
    (result,) = read_results(folder)
    assert exact(folder)
    assert (result.message_bytes, result.sizes) == (CHOICE.mean, CHOICE)
    assert read_run(folder).scenario.cells() == (result.cell,)


@pytest.mark.parametrize(("mistake", "found"), [("flip", "corrupted"), ("lose", "lost"), ("swap", "out_of_order")])
def test_a_mistake_among_mixed_sizes_is_found(ran, mistake, found):
    """Mistakes are found as with messages of one size."""
    folder = ran(*MEMORY, f"settings.capacity.mistake={mistake}", "settings.capacity.every=500", "timing.drain=3 s")
    assert getattr(read_trials(folder)[0].measurement, found) > 0


@pytest.mark.real
@pytest.mark.parametrize(
    "keys", ["load.keys={count: 100, choice: zipf}", "load.keys={count: 3}"], ids=["zipf", "uniform"]
)
def test_mixed_sizes_and_keys_pass_through_kafka(ran, kafka, keys):
    """Two partitions, two readers: nothing lost, and each key in its order."""
    assert exact(ran(keys, "settings.kafka.partitions=2", kafka=KafkaSite(kafka.address)))


@pytest.mark.real
def test_keys_pass_through_pulsar(ran, pulsar):
    """Each message goes to the partition of its key."""
    assert exact(ran("systems=python/pulsar", "load.keys={count: 100}", pulsar=pulsar.address))
