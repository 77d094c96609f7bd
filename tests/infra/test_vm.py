"""Tests on an emulated host with its own kernel: NFS, setting the clock, limits, a volume.

They need root and tests/vm.sh. The tests build on each other: each one continues where the previous one has ended.
"""

import os
import re
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
INVENTORY = ANSIBLE / "tests" / "inventories" / "vm.yml"
PLAYBOOK = "tests/one-vm.yml"
NTP_ADDRESS = ("127.0.0.1", 22123)
SECONDS_1900_TO_1970 = 2_208_988_800
TOOLS = ("qemu-system-x86_64", "mmdebstrap", "mke2fs", "ssh")
Process = subprocess.CompletedProcess[str]
Play = Callable[..., Any]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800)]


def vm(*arguments: str, seconds: float = 120) -> Process:
    """Run tests/vm.sh with its arguments and return the finished process."""
    command = [str(ANSIBLE / "tests" / "vm.sh"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
    )


def run_as_root(script: str) -> str:
    """Run a line of shell as root in the machine, assert its success and return its output."""
    process = vm("exec", "sudo", "sh", "-c", script)
    assert process.returncode == 0, f"{script}: {process.stdout}{process.stderr}"
    return process.stdout.strip()


def query_time() -> tuple[int, float, float]:
    """Query the machine by NTP; return its stratum, and its clock offset with the error bound in seconds."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(10)
        sent = time.time()
        client.sendto(b"\x23" + bytes(47), NTP_ADDRESS)
        response, arrived = client.recv(512), time.time()
    received, answered = (
        timestamp / 2**32 - SECONDS_1900_TO_1970 for timestamp in struct.unpack("!QQ", response[32:48])
    )
    return response[1], (received - sent + answered - arrived) / 2, (arrived - sent) / 2


@pytest.fixture(scope="module", autouse=True)
def one_vm() -> Iterator[None]:
    """Start a new machine without software and set its clock back by 7 s; stop it afterwards."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing or os.geteuid() != 0:
        packages = "qemu-system-x86 mmdebstrap e2fsprogs openssh-client"
        pytest.skip(
            f"a machine cannot be emulated here: {', '.join(missing) or 'not root'}; apt-get install {packages}"
        )
    try:
        up = vm("up", seconds=900)
        assert up.returncode == 0, up.stderr
        run_as_root("date --set '-7 seconds'")
        yield
    finally:
        vm("down")


def test_the_playbook_installs_the_host(play: Play) -> None:
    """The playbook succeeds and reports the clock offset."""
    result = play(PLAYBOOK, INVENTORY)
    assert re.search(r"vm-1: [+-]0\.0\d+ s off, root delay", result.output), result.output[-3000:]


def test_a_second_run_changes_nothing(play: Play) -> None:
    """No task of a second run of the playbook changes anything."""
    result = play(PLAYBOOK, INVENTORY)
    assert result.changed == {"vm-1": 0, "localhost": 0}


def test_chrony_has_set_the_clock() -> None:
    """Chrony follows the configured server, and its own NTP server answers with the correct time."""
    assert re.search(r"^\^\* 10\.0\.2\.2 ", run_as_root("chronyc -n sources"), re.M)
    assert "Leap status     : Normal" in run_as_root("chronyc tracking")
    stratum, offset, bound = query_time()
    assert stratum == 10
    assert abs(offset) < 0.1 + bound


def test_a_file_of_an_nfs_client_is_visible_on_the_server() -> None:
    """The mount uses NFS 4.2, and a new file on either side is listed on the other side at once."""
    assert re.search(r"nfs4 .*\bvers=4\.2\b.*\bhard\b", run_as_root("grep ' /mnt/stream ' /proc/mounts"))
    assert vm("exec", "sh", "-c", "echo from a client >/mnt/stream/one").returncode == 0
    assert run_as_root("ls /srv/stream; cat /srv/stream/one") == "one\nfrom a client"
    assert run_as_root("echo from the server >/srv/stream/two; ls /mnt/stream") == "one\ntwo"


def test_the_nfs_server_does_not_mount_its_own_folder() -> None:
    """If nfs_path is the exported folder, the role mounts nothing on the server."""
    assert run_as_root("grep -c ' /srv/stream ' /proc/mounts /etc/fstab || true") == "/proc/mounts:0\n/etc/fstab:0"


def test_the_volume_is_mounted() -> None:
    """The first existing device has a file system and is mounted with nofail, so that a boot does not depend on it."""
    assert run_as_root("findmnt --noheadings --output SOURCE,FSTYPE /srv/stream-bench").split() == ["/dev/vdb", "ext4"]
    assert re.search(r"^/dev/vdb /srv/stream-bench ext4 \S*\bnofail\b", run_as_root("grep vdb /etc/fstab"))
    run_as_root("echo kept >/srv/stream-bench/one; sync")


def test_a_volume_with_another_file_system_is_not_formatted(play: Play) -> None:
    """The role fails with one line, and the files on the volume are kept."""
    result = play("hosts.yml", INVENTORY, "-e", "volume_fstype=xfs", expect_failure=True)
    assert "/dev/vdb holds ext4; allowed: nothing, or xfs" in " ".join(result.output.split())
    assert run_as_root("cat /srv/stream-bench/one") == "kept"


def test_kernel_parameters_and_the_open_file_limit_are_set() -> None:
    """Buffers and port range have the values of the role, and a login has the limit of open files of the role."""
    names = "net.core.rmem_max net.core.wmem_max net.ipv4.ip_local_port_range"
    assert run_as_root(f"sysctl --values {names}").split() == ["16777216", "16777216", "16384", "60999"]
    assert vm("exec", "sh", "-c", "ulimit -n; ulimit -Hn").stdout.split() == ["100000", "100000"]


def test_everything_works_after_a_reboot() -> None:
    """Services, mounts, kernel parameters and the firewall are active without another playbook run."""
    process = vm("reboot", seconds=600)
    assert process.returncode == 0, process.stderr
    assert run_as_root("systemctl is-active chrony nfs-server stream-bench-firewall").split() == ["active"] * 3
    assert run_as_root("cat /mnt/stream/one; stat --file-system --format %T /mnt/stream") == "from a client\nnfs"
    assert (
        run_as_root("findmnt --noheadings --output SOURCE /srv/stream-bench; cat /srv/stream-bench/one")
        == "/dev/vdb\nkept"
    )
    assert run_as_root("sysctl --values net.core.rmem_max") == "16777216"
    rules = run_as_root("nft list table inet stream_bench")
    assert "udp dport 123 accept" in rules
    assert "tcp dport { 22, 22099 } accept" in rules  # the port of sshd, and the port that Ansible connects to


def test_teardown_yml_removes_everything_it_installed(play: Play) -> None:
    """Mounts, export, folder, settings and firewall are gone; the volume's files and the existing account are kept."""
    play("teardown.yml", INVENTORY, "-e", "nfs_path=/mnt/stream")
    assert run_as_root("grep -c nfs4 /proc/mounts /etc/fstab || true") == "/proc/mounts:0\n/etc/fstab:0"
    assert run_as_root("exportfs -s") == ""
    assert run_as_root("grep -c vdb /proc/mounts /etc/fstab || true") == "/proc/mounts:0\n/etc/fstab:0"
    assert run_as_root("wipefs --noheadings --output TYPE /dev/vdb") == "ext4"
    folders = "/srv/stream /srv/stream-bench /mnt/stream"
    remains = f"ls -d {folders} /etc/sysctl.d/90-stream-bench.conf /etc/security/limits.d/stream-bench.conf 2>/dev/null"
    assert run_as_root(f"{remains} || true") == ""
    assert (
        run_as_root("ls -d /etc/stream-bench /opt/stream-bench /etc/systemd/system/stream-bench* 2>/dev/null || true")
        == ""
    )
    assert run_as_root("nft list tables | grep stream_bench || true") == ""
    assert run_as_root("getent passwd operator1 | cut -d : -f 1") == "operator1"
