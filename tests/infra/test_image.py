"""The container image, built without a registry: bench, a load worker and HarmonicIO run in it.

They need root, buildah and mmdebstrap. The base is made of Debian's packages, with the package sources of this machine.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASE, IMAGE = "stream-bench-test-base", "stream-bench-test"
BUILD_S, RUN_S = 900, 300
NEEDED = ("buildah", "mmdebstrap")
DEBIAN = 'home=$(mktemp -d); . "$0"; make_key; debian "$1"; rm -rf "$home"'
"""bash: a Debian system as the test hosts have it, in an archive; the key that its account needs is thrown away."""
HARMONICIO = """
trap 'kill $(jobs -p); wait' EXIT
harmonicio master --port 8090 --data-port 8091 & harmonicio worker --port 8092 --master 127.0.0.1:8090 &
has_worker='import json, sys; sys.exit(not json.load(sys.stdin)["workers"])'
for _ in $(seq 100); do
  harmonicio status --master 127.0.0.1:8090 --json | python -c "$has_worker" && exit 0
  sleep 0.2
done
exit 1
"""

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(BUILD_S + 4 * RUN_S)]
InImage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def in_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InImage]:
    """A function that runs a command in a container of the new image."""
    if missing := [tool for tool in NEEDED if shutil.which(tool) is None]:
        pytest.fail(f"missing: {', '.join(missing)}; run: apt-get install buildah mmdebstrap", pytrace=False)
    archive = tmp_path_factory.mktemp("image") / "debian.tar"
    call("bash", "-ec", DEBIAN, str(ROOT / "infra/ansible/tests/debian.sh"), str(archive), seconds=BUILD_S)
    base = call("buildah", "from", "scratch").strip()
    call("buildah", "add", "--quiet", base, str(archive), "/")
    call("buildah", "commit", "--quiet", "--rm", base, BASE)
    archive.unlink()
    file = str(ROOT / "infra/image/Containerfile")
    build = ("--isolation", "chroot", "--build-arg", f"base=localhost/{BASE}", "--file", file, "--tag", IMAGE)
    call("buildah", "build", "--quiet", *build, str(ROOT), seconds=BUILD_S)
    container = call("buildah", "from", f"localhost/{IMAGE}").strip()

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        words = ["buildah", "run", "--isolation", "chroot", container, "--", "tini", "-g", "--", *command]
        return subprocess.run(words, capture_output=True, text=True, timeout=RUN_S, check=False)

    yield run
    call("buildah", "rm", container)
    call("buildah", "rmi", IMAGE, BASE)


def call(*command: str, seconds: float = RUN_S) -> str:
    """The standard output of a command that succeeds."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr[-3000:]}"
    return done.stdout


def test_bench_runs_as_a_user_without_privileges(in_image: InImage) -> None:
    """A small map is measured within the container, with Locust and plain Python processes."""
    assert in_image("id", "-u").stdout.strip() == "10001"
    done = in_image("bench", "run", "/opt/stream-bench/scenarios/smoke.yaml", "--out", "/tmp/results")
    assert done.returncode in (0, 4), done.stdout[-2000:] + done.stderr[-2000:]
    verified = in_image("sh", "-c", "bench verify /tmp/results/*")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_load_worker_runs(in_image: InImage) -> None:
    """It waits for a run until it is ended."""
    done = in_image("timeout", "-s", "INT", "10", "bench", "worker", "127.0.0.1:5557")
    assert "waiting for a run" in done.stdout + done.stderr, done.stdout + done.stderr


def test_harmonicio_runs(in_image: InImage) -> None:
    """A worker reports to a master."""
    done = in_image("bash", "-c", HARMONICIO)
    assert done.returncode == 0, done.stdout + done.stderr


def test_spark_starts(in_image: InImage) -> None:
    """Java and PySpark of the image fit together."""
    program = (
        "from pyspark.sql import SparkSession as S; print(S.builder.master('local').getOrCreate().range(9).count())"
    )
    name = "SPARK_LOCAL_HOSTNAME=localhost"  # buildah gives the container no name that resolves
    done = in_image("env", name, "python", "-c", program)
    assert done.stdout.strip().endswith("9"), done.stderr[-2000:]
