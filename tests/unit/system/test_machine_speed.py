"""The speed of this machine by a fixed piece of work."""

from bench.system.machine_speed import MachineSpeed, mean_speed, measure_speed, speed_ratios


def test_a_machine_has_a_speed():
    """Both figures are those of a machine of this century: between 1 MB/s and 1 TB/s."""
    speed = measure_speed()
    assert 1e6 < speed.cpu < 1e12
    assert 1e6 < speed.memory < 1e12


def test_the_speed_of_a_run_is_the_mean_of_its_visits():
    """A run that was slow half of the time is slower; a run without any measurement has no speed."""
    assert mean_speed([MachineSpeed(1.0, 20.0), MachineSpeed(3.0, 4.0)]) == MachineSpeed(2.0, 12.0)
    assert mean_speed([]) is None


def test_two_runs_have_a_ratio_for_each_kind_of_work():
    """There is none where one of them was not measured."""
    assert speed_ratios(MachineSpeed(2.0, 10.0), MachineSpeed(1.0, 12.0)) == {"CPU": 0.5, "memory bandwidth": 1.2}
    assert speed_ratios(None, MachineSpeed(1.0, 12.0)) == {}
