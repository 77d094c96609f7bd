"""A host with a kernel of its own does what containers cannot: NFS, a clock that is set, limits, a volume; as root, by tests/vm.sh.

The tests stand in the order of an operator's day, and each goes on from where the one before it has left the host.
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
TIME = ("127.0.0.1", 22123)
SINCE_1900 = 2_208_988_800
TOOLS = ("qemu-system-x86_64", "mmdebstrap", "mke2fs", "ssh")
Done = subprocess.CompletedProcess[str]
Play = Callable[..., Any]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800)]


def vm(*words: str, seconds: float = 120) -> Done:
    """What tests/vm.sh says."""
    command = [str(ANSIBLE / "tests" / "vm.sh"), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
    )


def inside(script: str) -> str:
    """What a line of shell says in the machine, as root."""
    done = vm("exec", "sudo", "sh", "-c", script)
    assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def asked_for_the_time() -> tuple[int, float, float]:
    """Of the machine's answer by NTP: its stratum, its clock minus ours in seconds, and by how much that may be wrong."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(10)
        sent = time.time()
        asker.sendto(b"\x23" + bytes(47), TIME)
        answer, came = asker.recv(512), time.time()
    received, answered = (part / 2**32 - SINCE_1900 for part in struct.unpack("!QQ", answer[32:48]))
    return answer[1], (received - sent + answered - came) / 2, (came - sent) / 2


@pytest.fixture(scope="module", autouse=True)
def one_vm() -> Iterator[None]:
    """A machine with nothing on it, whose clock is wrong; nothing of it runs afterwards."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing or os.geteuid() != 0:
        packages = "qemu-system-x86 mmdebstrap e2fsprogs openssh-client"
        pytest.skip(
            f"a machine cannot be emulated here: {', '.join(missing) or 'not root'}; apt-get install {packages}"
        )
    try:
        up = vm("up", seconds=900)
        assert up.returncode == 0, up.stderr
        inside("date --set '-7 seconds'")
        yield
    finally:
        vm("down")


def test_one_command_provisions_it(play: Play) -> None:
    """Clock, shared folder and limits are as the roles say, and the clock's offset is reported."""
    done = play(PLAYBOOK, INVENTORY)
    assert re.search(r"vm-1: [+-]0\.0\d+ s off, root delay", done.said), done.said[-3000:]


def test_a_second_time_changes_nothing(play: Play) -> None:
    """Every role finds its work done."""
    done = play(PLAYBOOK, INVENTORY)
    assert done.changed == {"vm-1": 0, "localhost": 0}


def test_its_clock_has_been_set() -> None:
    """It follows the server that the role names, and tells the site's hosts a time that is no longer wrong."""
    assert re.search(r"^\^\* 10\.0\.2\.2 ", inside("chronyc -n sources"), re.M)
    assert "Leap status     : Normal" in inside("chronyc tracking")
    stratum, off, bound = asked_for_the_time()
    assert stratum == 10
    assert abs(off) < 0.1 + bound


def test_a_file_that_a_client_writes_is_at_the_server() -> None:
    """It goes by NFS 4.2 through two folders of one kernel, and in the listing of the other it is there at once."""
    assert re.search(r"nfs4 .*\bvers=4\.2\b.*\bhard\b", inside("grep ' /mnt/stream ' /proc/mounts"))
    assert vm("exec", "sh", "-c", "echo from a client >/mnt/stream/one").returncode == 0
    assert inside("ls /srv/stream; cat /srv/stream/one") == "one\nfrom a client"
    assert inside("echo from the server >/srv/stream/two; ls /mnt/stream") == "one\ntwo"


def test_a_server_does_not_mount_over_its_own_folder() -> None:
    """Where a client's path would be that of the server, the role has left the folder as it is."""
    assert inside("grep -c ' /srv/stream ' /proc/mounts /etc/fstab || true") == "/proc/mounts:0\n/etc/fstab:0"


def test_its_volume_is_mounted() -> None:
    """The first of its names that is there has a file system, and a boot that does not find it goes on."""
    assert inside("findmnt --noheadings --output SOURCE,FSTYPE /srv/stream-bench").split() == ["/dev/vdb", "ext4"]
    assert re.search(r"^/dev/vdb /srv/stream-bench ext4 \S*\bnofail\b", inside("grep vdb /etc/fstab"))
    inside("echo kept >/srv/stream-bench/one; sync")


def test_a_volume_that_holds_something_else_is_not_formatted(play: Play) -> None:
    """It is refused in one line, and what is on it stays."""
    done = play("hosts.yml", INVENTORY, "-e", "volume_fstype=xfs", refused=True)
    assert "/dev/vdb holds ext4; allowed: nothing, or xfs" in " ".join(done.said.split())
    assert inside("cat /srv/stream-bench/one") == "kept"


def test_the_kernel_is_set_and_files_are_limited() -> None:
    """Buffers and ports are those of the role, and a login may open more files than a container lets it."""
    names = "net.core.rmem_max net.core.wmem_max net.ipv4.ip_local_port_range"
    assert inside(f"sysctl --values {names}").split() == ["16777216", "16777216", "16384", "60999"]
    assert vm("exec", "sh", "-c", "ulimit -n; ulimit -Hn").stdout.split() == ["100000", "100000"]


def test_all_of_it_stands_after_a_reboot() -> None:
    """Clock, export, mounts, the kernel's settings and the firewall are there without another playbook."""
    again = vm("reboot", seconds=600)
    assert again.returncode == 0, again.stderr
    assert inside("systemctl is-active chrony nfs-server stream-bench-firewall").split() == ["active"] * 3
    assert inside("cat /mnt/stream/one; stat --file-system --format %T /mnt/stream") == "from a client\nnfs"
    assert (
        inside("findmnt --noheadings --output SOURCE /srv/stream-bench; cat /srv/stream-bench/one") == "/dev/vdb\nkept"
    )
    assert inside("sysctl --values net.core.rmem_max") == "16777216"
    rules = inside("nft list table inet stream_bench")
    assert "udp dport 123 accept" in rules
    assert "tcp dport { 22, 22099 } accept" in rules  # where sshd listens, and where Ansible comes in


def test_nothing_is_left_where_it_was(play: Play) -> None:
    """Teardown takes mounts, export, folder, settings and firewall away; files of a volume and the account that was there stay."""
    play("teardown.yml", INVENTORY, "-e", "nfs_path=/mnt/stream")
    assert inside("grep -c nfs4 /proc/mounts /etc/fstab || true") == "/proc/mounts:0\n/etc/fstab:0"
    assert inside("exportfs -s") == ""
    assert inside("grep -c vdb /proc/mounts /etc/fstab || true") == "/proc/mounts:0\n/etc/fstab:0"
    assert inside("wipefs --noheadings --output TYPE /dev/vdb") == "ext4"
    folders = "/srv/stream /srv/stream-bench /mnt/stream"
    left = f"ls -d {folders} /etc/sysctl.d/90-stream-bench.conf /etc/security/limits.d/stream-bench.conf 2>/dev/null"
    assert inside(f"{left} || true") == ""
    assert (
        inside("ls -d /etc/stream-bench /opt/stream-bench /etc/systemd/system/stream-bench* 2>/dev/null || true") == ""
    )
    assert inside("nft list tables | grep stream_bench || true") == ""
    assert inside("getent passwd operator1 | cut -d : -f 1") == "operator1"
