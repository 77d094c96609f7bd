"""A PE in a container reports the port of its host, and listens at the one inside."""

import os
import signal
import socket
import subprocess
import sys

import pytest
from legacy_peers import LegacyMaster
from processes import HERE, PE_ENVIRONMENT, free_port, wait_until

from frameworks.harmonicio.engine.config import read_pe_config


@pytest.fixture
def start(tmp_path):
    """Starts a PE of that master as in a container; returns the ports inside and outside."""
    processes = []

    def started(master_port):
        inside, outside = free_port(), free_port()
        ports = {"HDE_NODE_DATA_PORT": inside, "HDE_NODE_PORT": outside, "HDE_MASTER_PORT": master_port}
        environment = {
            **os.environ,
            **PE_ENVIRONMENT,
            **{name: str(port) for name, port in ports.items()},
            "PYTHONPATH": str(HERE),
        }
        with (tmp_path / "pe.log").open("wb") as log:
            command = [sys.executable, "-m", "frameworks.harmonicio.engine.pe.main"]
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        return inside, outside

    yield started
    for process in processes:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@pytest.mark.real
def test_our_master_gets_the_port_of_the_host(cluster, start):
    """The PE listens at the port inside."""
    cluster.start_master()
    inside, outside = start(cluster.port)
    (pe,) = cluster.wait_pes(1)
    assert pe["port"] == outside
    socket.create_connection(("127.0.0.1", inside), timeout=10).close()


@pytest.mark.real
def test_a_legacy_master_gets_the_port_of_the_host(start):
    """It is the batch_port of the poll."""
    master = LegacyMaster()
    _, outside = start(master.port)
    wait_until(lambda: master.idle, "a registration")
    assert master.idle[0] == ("127.0.0.1", outside, "img")
    master.close()


def test_without_a_port_of_the_host_both_ports_are_the_same():
    """Legacy workers set both, others may not."""
    config = read_pe_config({name: value for name, value in PE_ENVIRONMENT.items() if name != "HDE_NODE_PORT"})
    assert (read_pe_config(PE_ENVIRONMENT).port, read_pe_config(PE_ENVIRONMENT).reached_port) == (80, 9001)
    assert (config.port, config.reached_port) == (80, 80)
