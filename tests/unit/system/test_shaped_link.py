"""A link of known bandwidth is made where the machine allows it, and refused in one line elsewhere."""

import subprocess

import pytest

from bench.errors import UsageError
from bench.system.shaped_link import command_for, main
from bench.units import Bandwidth


@pytest.mark.real
def test_loopback_is_shaped_for_the_command_alone():
    """Inside the namespace loopback has a token bucket of that rate; outside it has none."""
    shown = ["tc", "qdisc", "show", "dev", "lo"]
    try:
        command = command_for(Bandwidth.read("100 Mbit/s"), shown)
    except UsageError as refused:
        pytest.skip(str(refused))
    inside = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    outside = subprocess.run(shown, capture_output=True, text=True, timeout=30, check=True).stdout
    assert "tbf" in inside
    assert "rate 100Mbit" in inside
    assert "tbf" not in outside


@pytest.mark.parametrize("arguments", [[], ["100 Mbit/s"], ["100 mbit", "true"], ["fast", "true"]])
def test_arguments_without_bandwidth_or_command_are_refused(arguments, capsys):
    """The error is one line, and the exit code is 2."""
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert capsys.readouterr().err.count("\n") == 1
