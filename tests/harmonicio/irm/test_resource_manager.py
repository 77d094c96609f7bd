"""The resource manager places requested PEs on workers, without a clock or a socket."""

from frameworks.harmonicio.engine.irm.parameters import PAPER
from frameworks.harmonicio.engine.irm.resource_manager import ResourceManager


def manage(workers=("a", "b", "c")):
    """Return a manager that knows these workers."""
    manager = ResourceManager(PAPER, "leq")
    manager.follow(list(workers), set(), set(), set(), 0.0)
    return manager


def place(manager):
    """Pack and scale; return (worker, size) of the placements."""
    manager.pack()
    manager.scale()
    return [(placement.worker, placement.size) for placement in manager.take_placements()]


def test_requests_are_packed_onto_the_first_worker_that_fits():
    """The default share is that of the parameters."""
    manager = manage()
    manager.request("s", image="", volatile=False, num=2, size=0.6)
    manager.request("t", image="", volatile=False, num=1, size=None)
    assert place(manager) == [("a", 0.6), ("b", 0.6), ("a", PAPER.default_cpu_share)]


def test_a_request_without_a_worker_is_retried_and_then_dropped():
    """Its space is free again."""
    manager = manage(workers=())
    manager.request("s", image="", volatile=False, num=1, size=0.5)
    for _ in range(2):
        assert place(manager) == []
    assert (manager.view()["waiting"], manager.view()["dropped"], manager.packing.bins) == (0, 1, [])


def test_a_request_that_fits_no_worker_is_refused():
    """The view shows why."""
    manager = manage()
    manager.request("s", image="", volatile=False, num=1, size=1.5)
    assert place(manager) == []
    assert "does not fit" in manager.view()["refused"][0]


def test_an_ended_pe_leaves_its_bin():
    """So does one that never registers, after a while."""
    manager = manage()
    manager.request("s", image="", volatile=False, num=2, size=0.6)
    manager.pack()
    for number, placement in enumerate(manager.take_placements()):
        manager.record_start(placement.request, f"pe{number}", 0.0)
    manager.follow(["a", "b"], set(), {"pe0"}, {"pe1"}, 1.0)
    assert len(manager.packing.bins) == 1
    manager.follow(["a", "b"], set(), set(), set(), 100.0)
    assert manager.packing.bins == []


def test_a_growing_queue_requests_volatile_pes():
    """Their number follows the predictor's table."""
    manager = manage()
    manager.request("s", image="i", volatile=False, num=0, size=None)
    manager.predict({"s": 50}, 1.0)
    requests = [(one.c_name, one.image, one.volatile) for one in manager.requests.drain()]
    assert requests == [("s", "i", True)] * PAPER.large_scaleup_amount


def test_a_forgotten_stream_has_no_requests_and_gets_none():
    """Its packed requests leave their bins, and its queue requests nothing."""
    manager = manage()
    manager.request("s", image="i", volatile=False, num=2, size=0.5)
    manager.pack()
    manager.request("s", image="i", volatile=False, num=2, size=0.5)
    manager.forget("s")
    manager.predict({"s": 50}, 1.0)
    assert (place(manager), manager.view()["waiting"], manager.packing.bins) == ([], 0, [])
