"""The harness's end of a Spark driver: one child process with one Spark session, kept between cells."""

import shutil
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from threading import RLock

from msgspec import Struct

from bench.errors import HarnessError, NotReadyError, PluginError, ProcessDiedError, UsageError
from bench.plugins.environment import RunEnvironment
from bench.system.ipc import Failure, Ready
from bench.workload.delivery_counts import ProcessingReport
from frameworks.spark import gc_log
from frameworks.spark.commands import Command, Read, StartSession, Stop
from frameworks.spark.secrets import write_defaults

_START_TIMEOUT_S = 120.0
"""Seconds within which a session stands; usually 5 to 10."""
_READ_TIMEOUT_S = 150.0
"""Within which a query reads; usually 1 to 3. A busy machine that started its first one took more than 60."""
_STOP_TIMEOUT_S = 12.0
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING_FILE = "log4j2.properties"
_CONF_FOLDER = "conf"
"""It exists where there is a secret only: a JVM that finds a folder with files in its class path maps no archive of
classes."""
_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.shell.name = org.apache.hadoop.util.Shell
logger.shell.level = error
logger.scheduler.name = org.apache.spark.scheduler.DAGScheduler
logger.scheduler.level = error
"""


class SessionPlan(Struct, frozen=True):
    """Everything that would need another session if it were different."""

    conf: dict[str, str]
    """complete but for the jars"""
    cores: int
    jars: Path | None
    password_file: str | None = None
    """whose first line is the secret of a secured cluster"""
    side_by_side: int = 1
    """how many sessions may stand at a time, each for cells of its own; only one of them works"""


class Session:
    """A running driver. Raises NotReadyError, ProcessDiedError or PluginError when it does not start."""

    def __init__(self, plan: SessionPlan, folder: Path, env: RunEnvironment) -> None:
        self.name = f"spark {folder.name}"
        """unlike that of any other session of the run"""
        self._folder, self._over = folder, False
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _LOGGING_FILE).write_text(_LOGGING)
        if plan.password_file is not None:
            (folder / _CONF_FOLDER).mkdir()
            write_defaults(folder / _CONF_FOLDER, plan.password_file)
        self._child = env.supervisor.start(
            [sys.executable, "-m", "frameworks.spark.job"],
            name="spark",
            role="framework",
            received=Ready | Failure | ProcessingReport,
            env=_environment(folder, plan.conf),
            cwd=folder,
        )
        try:
            self.send(StartSession(_complete_conf(plan, folder), plan.cores), seconds=_START_TIMEOUT_S)
        except HarnessError:
            self.close()
            raise

    def alive(self) -> bool:
        """Return whether it can serve another cell."""
        return not self._over and self._child.alive()

    def send(self, command: Command, seconds: float = _READ_TIMEOUT_S) -> None:
        """Send a command; return once it is carried out. What was reported before is dropped.

        Args:
            command: to the driver.
            seconds: within which it must be carried out.

        Raises:
            PluginError: Spark refuses; the session is over then.
            ProcessDiedError: the driver ended.
            NotReadyError: it takes longer than `seconds`.
        """
        self._child.inbox.send(command)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for answer in self._child.inbox.receive(0.2):
                if isinstance(answer, Ready):
                    return
                if isinstance(answer, Failure):
                    self._over = True
                    raise PluginError("spark", _VERBS[type(command)], f"{answer.reason} (log: {self._child.log})")
            if not self._child.alive():
                raise self._child.exit_error()
        raise NotReadyError(f"spark did not {_VERBS[type(command)]} within {seconds:g} s", self._child.log)

    def reports(self) -> list[ProcessingReport]:
        """Return what was processed since the last call. Raises ProcessDiedError once the session cannot go on."""
        gone = not self._child.alive()  # looked at first: what it said last is then heard
        reports: list[ProcessingReport] = []
        for received in self._child.inbox.receive():
            if isinstance(received, Failure):
                self._over = True
                raise ProcessDiedError(f"spark: {received.reason}", self._child.log)
            if isinstance(received, ProcessingReport):
                reports.append(received)
        if gone and not reports:
            raise self._child.exit_error()
        return reports

    def stop_reading(self) -> None:
        """Stop the query; when it cannot be stopped in time, the session is ended with it."""
        if not self.alive():
            return
        try:
            self.send(Stop(), seconds=_STOP_TIMEOUT_S)
        except HarnessError:
            self._child.kill()

    def close(self) -> None:
        """End Spark. Idempotent."""
        self._over = True
        self._child.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class Slot:
    """A holder of sessions, one for each plan, as many as the memory allows; several threads may use it."""

    def __init__(self) -> None:
        self._sessions: list[tuple[SessionPlan, Session]] = []
        """the one that was used last at the end"""
        self._lock, self._number = RLock(), 0

    def session(self, plan: SessionPlan, env: RunEnvironment) -> Session:
        """Return the session of that plan; make one where there is none, and end older ones that are too many."""
        with self._lock:
            found = self._find(plan)
            if found is not None:
                self._sessions.remove((plan, found))
            else:
                while not self.fits(plan):
                    self._sessions.pop(0)[1].close()
                env.note("starting Spark")
                self._number += 1
                found = Session(plan, env.data / "spark" / f"session-{self._number}", env)
            self._sessions.append((plan, found))
            return found

    def fits(self, plan: SessionPlan) -> bool:
        """Return whether a session of that plan can be had without ending another one."""
        with self._lock:
            return self._find(plan) is not None or len(self._sessions) < plan.side_by_side

    def alive(self) -> bool:
        """Return True: a holder without a session can make one."""
        return True

    def close(self) -> None:
        """End all sessions."""
        while self._sessions:
            self._sessions.pop()[1].close()

    def _find(self, plan: SessionPlan) -> Session | None:
        for dead in [one for one in self._sessions if not one[1].alive()]:
            self._sessions.remove(dead)
            dead[1].close()
        return next((session for known, session in self._sessions if known == plan), None)


_VERBS: dict[type[Command], str] = {StartSession: "start", Read: "open", Stop: "close"}


def _complete_conf(plan: SessionPlan, folder: Path) -> dict[str, str]:
    """Return the settings with the jars, and with where the driver's settings of log messages and its pauses are."""
    log = f'-Dlog4j2.configurationFile="{folder / _LOGGING_FILE}" {gc_log.OPTION}'
    options = f"{log} {plan.conf.get(_JAVA_OPTIONS, '')}"
    conf = {**plan.conf, _JAVA_OPTIONS: options.strip()}
    if plan.jars is not None:
        conf["spark.jars"] = ",".join(str(jar) for jar in sorted(plan.jars.glob("*.jar")))
    return conf


def _environment(folder: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with PySpark's own Spark and our own interpreter, whatever else is installed or set."""
    pyspark = find_spec("pyspark")
    if pyspark is None or not pyspark.submodule_search_locations:
        raise UsageError("spark needs the package 'pyspark', which is not installed; pip install 'stream-bench[spark]'")
    return {
        "SPARK_HOME": pyspark.submodule_search_locations[0],
        "SPARK_CONF_DIR": str(folder / _CONF_FOLDER),  # first in the class path
        "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
        "PYSPARK_PYTHON": conf.get("spark.pyspark.python", sys.executable),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "TMPDIR": str(folder),  # a driver that is killed while it starts leaves PySpark's folder for its port
        **({"SPARK_LOCAL_IP": conf["spark.driver.bindAddress"]} if "spark.driver.bindAddress" in conf else {}),
    }
