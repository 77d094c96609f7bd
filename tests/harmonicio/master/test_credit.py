"""The master's queue accepts messages up to its limits, from any number of connectors."""

import pytest
from processes import numbered, wait_until

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import UnreachableError

pytestmark = pytest.mark.real
MEGABYTE = 2**20


@pytest.fixture
def bounded(cluster):
    """Starts a master whose queue holds so many megabytes, in messages of a megabyte at most."""

    def start(megabytes):
        (cluster.folder / "master.yaml").write_text(f"queue_bytes: {megabytes * MEGABYTE}\nmessage_bytes: {MEGABYTE}\n")
        cluster.start_master("--config", str(cluster.folder / "master.yaml"))
        return cluster

    return start


@pytest.fixture
def connectors():
    """Opens connected connectors, which are closed afterwards."""
    made = []

    def connect(cluster, **options):
        made.append(Connector(c_name="s", port=cluster.data_port, credit_timeout=0.01, **options))
        wait_until(lambda: (made[-1].feeder.step(), made[-1].feeder.connected)[1], "the master's welcome")
        return made[-1]

    yield connect
    for one in made:
        one.close()


def test_idle_connectors_do_not_reduce_the_queue_for_others(bounded, connectors):
    """A busy connector among eight idle ones queues all of its messages."""
    cluster = bounded(4)
    for _ in range(8):
        connectors(cluster)
    busy = connectors(cluster)
    busy.send_many(numbered(0, 1000))
    busy.flush()
    assert busy.feeder.queued == 1000


def test_a_connector_that_connects_to_a_full_queue_gets_credit_once_there_is_space(bounded, connectors):
    """It gets credit without having sent anything."""
    cluster = bounded(2)
    first = connectors(cluster)
    first.send_many(numbered(0, 11, size=100_000))
    first.flush()
    late = connectors(cluster, timeout=0.5)
    with pytest.raises(UnreachableError):
        late.send(b"one more")
    cluster.operator.withdraw("s", purge=True)
    wait_until(lambda: (late.feeder.step(), late.feeder.offer([b"one more"]))[1], "credit")
    late.flush()
    assert late.feeder.acked == 1


def test_a_queue_that_one_connector_fills_gives_no_credit_to_idle_ones(bounded, connectors):
    """The queue keeps its limit, and no connection is closed for exceeding it."""
    cluster = bounded(8)
    idle, filler = [connectors(cluster, timeout=0.5) for _ in range(3)], connectors(cluster, timeout=0.5)
    for one in (filler, *idle):
        with pytest.raises(UnreachableError):
            one.send_many(numbered(0, 120, size=100_000))
    totals = cluster.operator.status()["totals"]
    assert 6 * MEGABYTE < totals["queue_bytes"] <= 8 * MEGABYTE
    assert totals["refused_total"] == 0
