"""The speed of this machine by a fixed piece of work."""

from bench.system.machine_speed import MachineSpeed, measure_speed, median_speed


def test_a_machine_has_a_speed():
    """Both figures are those of a machine of this century: between 1 MB/s and 1 TB/s."""
    speed = measure_speed()
    assert 1e6 < speed.cpu < 1e12
    assert 1e6 < speed.memory < 1e12


def test_the_speed_of_a_run_is_the_median_of_its_visits():
    """One slow moment does not change it; a run without any measurement has none."""
    assert median_speed([MachineSpeed(1.0, 20.0), MachineSpeed(3.0, 2.0), MachineSpeed(2.0, 10.0)]) == MachineSpeed(
        2.0, 10.0
    )
    assert median_speed([]) is None
