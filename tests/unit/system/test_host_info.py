"""Facts about this machine."""

import pytest

from bench.system import host_info


@pytest.mark.parametrize(
    ("kind", "features", "lent"),
    [("0x0005", "011001010000", True), ("0x0005", "0110", False), ("0x0002", "011001010000", False)],
)
def test_a_balloon_that_reports_free_pages_lends_memory(tmp_path, kind, features, lent):
    """Bit 5 of the features of a balloon; of another device it means something else."""
    folder = tmp_path / "virtio0"
    folder.mkdir()
    (folder / "device").write_text(f"{kind}\n")
    (folder / "features").write_text(f"{features}\n")
    assert host_info.memory_is_lent(tmp_path) is lent


def test_a_machine_without_such_devices_lends_nothing(tmp_path):
    """Such as a laptop."""
    assert not host_info.memory_is_lent(tmp_path / "missing")
