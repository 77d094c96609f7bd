"""The cluster of a run.

The site's, or a JobManager and a TaskManager of the harness's own, as child processes kept between cells.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import yaml

from bench.config.address import Address
from bench.errors import PluginError, ServiceError
from bench.plugins.environment import RunEnvironment
from bench.plugins.placement import place
from bench.services.embedded_server import start_embedded
from bench.services.java import java
from bench.services.ports import LOOPBACK, free_ports
from bench.services.python_environments import interpreter, variables
from bench.system.child import Child
from bench.system.ipc import Failure
from frameworks.flink.commands import Submitted
from frameworks.flink.conf import FlinkSettings, Ports, cluster_conf, config_text, local_conf
from frameworks.flink.installation import ENVIRONMENT, flink_home
from frameworks.flink.rest import FlinkRest
from frameworks.flink.site import FLINK_SITE, FlinkSite

START_TIMEOUT_S = 120.0
"""For each of the two processes; usually 5 s, and 25 s on a busy machine."""
SLOTS_TIMEOUT_S, _POLL_INTERVAL_S = 30.0, 0.5
"""For the free task slots of a site's cluster: after a restart TaskManagers come one after the other."""
OPEN_PORTS = "Flink: while a job runs, Apache Beam has ports for its Python workers open on every interface"
_JAVA_OPTIONS = "env.java.opts.all"
_NUMBERS = count(1)
_FOLDER_LOCK = threading.Lock()
"""Systems of a site's cluster are prepared side by side, and share the folder of their clients."""
_MODULES = "stream_bench.zip"
_LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
appender.console.name = console
appender.console.type = Console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""
_LOGGING_FILES = ("log4j-console.properties", "log4j-cli.properties")
"""Of Flink's two processes, and of clients."""


class EmbeddedFlinkCluster:
    """A cluster of the harness's own; listens on loopback, but for its jobs' `OPEN_PORTS`."""

    listen = (LOOPBACK, 0)
    """where Python workers tell what they have done"""
    modules: Path | None = None
    """a file with our own modules that a job brings; workers of this machine find them without"""

    def __init__(self, jobmanager: Child, taskmanager: Child, rest: FlinkRest, *, folder: Path, python: str) -> None:
        self.name, self.rest, self.log = f"flink {next(_NUMBERS)}", rest, taskmanager.log
        self.python = python
        """the interpreter of its workers"""
        self._children, self._folder, self._over = (jobmanager, taskmanager), folder, False

    def alive(self) -> bool:
        """Return whether it can serve another cell."""
        return not self._over and all(child.alive() for child in self._children)

    def check(self) -> None:
        """Raise ProcessDiedError when a process of it has ended."""
        for child in self._children:
            if not child.alive():
                raise child.exit_error()

    def start_client(self, env: RunEnvironment) -> Child:
        """Start the client that submits one job."""
        return _start_client(self._folder, env)

    def close(self) -> None:
        """End it and delete its data; idempotent."""
        self._over = True
        for child in reversed(self._children):
            child.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class SiteFlinkCluster:
    """The site's cluster, which is neither started nor stopped here."""

    log: Path | None = None

    def __init__(self, site: FlinkSite, slots: int, env: RunEnvironment) -> None:
        self.name, self.rest, self.python = f"flink at {site.rest}", FlinkRest(site.rest), site.python
        self.listen, self._folder = Address.parse(site.listen), env.data / "flink-client"
        with _FOLDER_LOCK:
            if not self._folder.exists():
                env.data.mkdir(parents=True, exist_ok=True)
                part = Path(tempfile.mkdtemp(prefix="flink-client-", dir=env.data))
                _write_files(part, flink_home(env.cache), {})
                _pack_modules(part)
                part.rename(self._folder)  # whole, or not there
        self.modules: Path | None = self._folder / _MODULES
        self._wait_for_slots(slots, env)

    def _wait_for_slots(self, slots: int, env: RunEnvironment) -> None:
        """Wait for so many free task slots. Raises PluginError where there are fewer after SLOTS_TIMEOUT_S.

        A cluster without any slot is not waited for: YARN and Kubernetes start TaskManagers when a job asks for them,
        and the deadline of the job decides.
        """
        deadline, noted = time.monotonic() + SLOTS_TIMEOUT_S, False
        while (seen := self.rest.overview()).slots_total > 0 and (free := seen.slots_available) < slots:
            if time.monotonic() > deadline:
                where = f"http://{self.rest.address}/#/job/running"
                why = f"{self.rest.address} has {free} task slots free, and {slots} are needed"
                raise PluginError("flink", "open", f"{why}; end jobs that an earlier run has left there: {where}")
            if not noted:
                env.note(f"Flink: {free} of {slots} task slots are free; waiting for the others")
            noted = True
            time.sleep(_POLL_INTERVAL_S)

    def alive(self) -> bool:
        """Return True: a cell after this one may use it, too."""
        return True

    def check(self) -> None:
        """Do nothing: the harness looks at a site's endpoints by itself."""

    def start_client(self, env: RunEnvironment) -> Child:
        """Start the client that submits one job."""
        return _start_client(self._folder, env)

    def close(self) -> None:
        """Do nothing: it is the site's."""


def slots_of(settings: FlinkSettings, env: RunEnvironment) -> int:
    """Return how many task slots a job takes; at most, where its workers come and go."""
    return settings.cores or env.max_workers or place("flink", "kafka", env.site, env.cores).cores


def cluster_of(settings: FlinkSettings, env: RunEnvironment) -> EmbeddedFlinkCluster | SiteFlinkCluster:
    """Return the site's cluster, or the run's own with these settings; start that if it is not there.

    Raises:
        UsageError: Flink or Java is missing.
        PluginError: the site's cluster has too few task slots free.
        ServiceError: the site's does not answer, or the run's own does not come up.
    """
    site, slots = FLINK_SITE.read(env.site), slots_of(settings, env)
    if site is not None:
        return SiteFlinkCluster(site, slots, env)
    conf = cluster_conf(settings, slots, elastic=env.max_workers is not None)
    return env.cached_resource(("flink", config_text(conf)), lambda: _start(conf, slots, env))


def java_options(shipped: str) -> str:
    """Return the options that Flink's own config.yaml has for every JVM: without them it does not run on Java 17.

    Args:
        shipped: the text of that file.
    """
    found = yaml.safe_load(shipped)
    for key in _JAVA_OPTIONS.split("."):
        found = found.get(key, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, str) else ""


def _start(conf: Mapping[str, str], slots: int, env: RunEnvironment) -> EmbeddedFlinkCluster:
    java()  # or Flink's scripts would say less clearly that there is none
    home = flink_home(env.cache)
    env.note(OPEN_PORTS)
    with start_embedded("Flink", env.data, env.note) as start:
        rest_port, rpc_port = free_ports(2)
        rest = FlinkRest(f"{LOOPBACK}:{rest_port}")
        config = _write_files(start.folder, home, local_conf(Ports(rest_port, rpc_port), start.folder) | dict(conf))
        started = []
        for name in ("jobmanager", "taskmanager"):
            child = env.supervisor.start(
                ["bash", str(home / "bin" / f"{name}.sh"), "start-foreground"],
                name=f"flink-{name}",
                role="framework",
                env=_variables(home, start.folder, env.cache),
                cwd=start.folder,
            )
            started.append(start.own(child, config))
        jobmanager, taskmanager = started
        jobmanager.wait_ready(lambda: _slots(rest) is not None, START_TIMEOUT_S)
        taskmanager.wait_ready(lambda: _slots(rest) == slots, START_TIMEOUT_S)
    return EmbeddedFlinkCluster(
        jobmanager, taskmanager, rest, folder=start.folder, python=str(interpreter(ENVIRONMENT, env.cache))
    )


def _start_client(folder: Path, env: RunEnvironment) -> Child:
    """Start a client with the configuration and the log settings of a folder."""
    return env.supervisor.start(
        [str(interpreter(ENVIRONMENT, env.cache)), "-m", "frameworks.flink.job"],
        name="flink-client",
        role="framework",
        received=Submitted | Failure,
        env=_variables(flink_home(env.cache), folder, env.cache),
        cwd=folder,
    )


def _write_files(folder: Path, home: Path, conf: Mapping[str, str]) -> Path:
    """Write what Flink reads into a folder; return the path of its configuration."""
    for name in _LOGGING_FILES:
        (folder / name).write_text(_LOGGING, encoding="utf-8")
    for name in ("tmp", "logs"):
        (folder / name).mkdir()
    shipped = (home / "conf" / "config.yaml").read_text(encoding="utf-8")
    path = folder / "config.yaml"
    path.write_text(config_text({_JAVA_OPTIONS: java_options(shipped), **conf}), encoding="utf-8")
    return path


def _pack_modules(folder: Path) -> None:
    """Write our own modules that workers on other hosts import into a file in a folder."""
    root, left_out = Path(__file__).parents[2], shutil.ignore_patterns("__pycache__", "harmonicio", "spark", "*.log")
    for name in ("bench", "frameworks"):
        shutil.copytree(root / name, folder / "modules" / name, ignore=left_out)
    shutil.make_archive(str((folder / _MODULES).with_suffix("")), "zip", folder / "modules")
    shutil.rmtree(folder / "modules")


def _variables(home: Path, folder: Path, cache: Path) -> Mapping[str, str]:
    """Return an environment with this Flink, whatever other one is installed or set.

    Flink gives the TaskManager's variables to its Python workers, which find our packages by them.
    """
    return {
        **variables(ENVIRONMENT, cache),
        "FLINK_HOME": str(home),
        "FLINK_LIB_DIR": str(home / "lib"),
        "FLINK_OPT_DIR": str(home / "opt"),
        "FLINK_PLUGINS_DIR": str(home / "plugins"),
        "FLINK_CONF_DIR": str(folder),
        "FLINK_LOG_DIR": str(folder / "logs"),
        "FLINK_PID_DIR": str(folder),
        "TMPDIR": str(folder / "tmp"),  # PyFlink makes folders in it, which a client that is killed leaves behind
        "_python_worker_execution_mode": "process",  # of a client: or functions may run as its threads
    }


def _slots(rest: FlinkRest) -> int | None:
    """Return how many task slots there are; None where nobody answers."""
    try:
        return rest.overview().slots_total
    except ServiceError:
        return None
