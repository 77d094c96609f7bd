"""Jars of the embedded services, downloaded with the Apache Ivy that PySpark ships and checked against jars.lock."""

import contextlib
import fcntl
import hashlib
import importlib.util
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from bench.child import Child
from bench.errors import NotReady, ServiceError, UsageError
from bench.process import Supervisor
from bench.services.java import java

LOCK = Path(__file__).with_name("jars.lock")

_PATIENCE = 900.0
"""Seconds for one set of jars, waiting for another process's download included."""

_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false" checksums=""/></resolvers>
</ivysettings>
"""
"""Ivy's ordinary repository without its metadata: the lock file lists every jar, and 46 jars take 6 s instead of 30 s."""


class Pin(NamedTuple):
    """One jar of the lock file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def jars(set_name: str, cache: Path, note: Callable[[str], None], *, lock: Path = LOCK) -> Path:
    """The folder with exactly the jars of a set; downloaded when the cache does not have them, by one process at a time.

    Raises UsageError where PySpark or Java is missing, ServiceError when a jar cannot be had or is not the one that was pinned.
    """
    pins = pinned(set_name, lock)
    folder = _folder(set_name, cache, pins)
    if _complete(folder, pins):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_suffix(".lock"), lambda: note(f"{set_name} jars: another process is downloading them")):
        if not _complete(folder, pins):
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)
            _download(set_name, pins, part, note)
            verify(part / "jars", pins)
            (part / "jars").rename(folder)  # the last step: what is there under its name is complete
            shutil.rmtree(part)
    return folder


def cached(set_name: str, cache: Path, *, lock: Path = LOCK) -> bool:
    """Whether the jars of a set are there already."""
    pins = pinned(set_name, lock)
    return _complete(_folder(set_name, cache, pins), pins)


def folder_of(set_name: str, cache: Path, *, lock: Path = LOCK) -> Path:
    """Where the jars of a set are in a cache, or would be: whoever has a mirror may put them there."""
    return _folder(set_name, cache, pinned(set_name, lock))


def pinned(set_name: str, lock: Path = LOCK) -> list[Pin]:
    """The jars of a set as the lock file lists them."""
    text = lock.read_text(encoding="utf-8")
    entries = yaml.load(text, Loader=yaml.BaseLoader)[set_name]  # noqa: S506  it makes strings only, also of 12345 and 1e5
    return [Pin._make([*coordinates.split(":"), sha256]) for coordinates, sha256 in entries.items()]


def verify(folder: Path, pins: Sequence[Pin]) -> None:
    """Raise ServiceError, naming the file, unless every pinned jar is there and is the one that was pinned."""
    for pin in pins:
        path = folder / pin.file
        if not path.is_file():
            raise ServiceError(f"{pin.file} was not downloaded to {folder}; is {pin.group}:{pin.artifact} on your registry?")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != pin.sha256:
            raise ServiceError(f"{path} is not the pinned jar: its SHA-256 is {found}, expected {pin.sha256}")


def _folder(set_name: str, cache: Path, pins: Sequence[Pin]) -> Path:
    """Where a set is or will be; other pins, another folder."""
    digest = hashlib.sha256("\n".join(map(":".join, pins)).encode()).hexdigest()
    return cache.absolute() / "jars" / f"{set_name}-{digest[:12]}"


def _complete(folder: Path, pins: Sequence[Pin]) -> bool:
    """Whether the folder has all files; what they contain was checked before the folder got its name."""
    return all((folder / pin.file).is_file() for pin in pins)


@contextlib.contextmanager
def _locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Nobody else holds this lock file; `waiting` is called once if somebody did."""
    deadline, told = time.monotonic() + _PATIENCE, False
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise ServiceError(f"{path} is held by another process for {_PATIENCE:g} s already") from error
            if not told:
                waiting()
            told = True
            time.sleep(0.1)
        yield


def _download(set_name: str, pins: Sequence[Pin], part: Path, note: Callable[[str], None]) -> None:
    """Let Ivy put the jars into part/jars; what else it makes stays in `part`."""
    part.mkdir()
    (part / "settings.xml").write_text(_SETTINGS, encoding="utf-8")
    (part / "ivy.xml").write_text(_ivy_file(set_name, pins), encoding="utf-8")
    options = {
        "-settings": part / "settings.xml",
        "-cache": part / "cache",
        "-ivy": part / "ivy.xml",
        "-retrieve": part / "jars" / "[artifact]-[revision].[ext]",
        "-confs": "default",
    }
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", str(_ivy()), "org.apache.ivy.Main"]
    with Supervisor(part / "running", part / "logs") as supervisor:
        child = supervisor.start(
            [*command, *(str(word) for option in options.items() for word in option)], name="ivy", role="source"
        )
        _watch(child, set_name, len(pins), note)


def _watch(child: Child, set_name: str, count: int, note: Callable[[str], None]) -> None:
    """Tell how many jars have come until all have."""
    deadline, told = time.monotonic() + _PATIENCE, -1
    while child.alive():
        come = child.log.read_text(errors="replace").count("[SUCCESSFUL ]")
        if come != told:
            note(f"{set_name} jars: {come} of {count} downloaded")
        told = come
        if time.monotonic() >= deadline:
            raise NotReady(f"the {set_name} jars could not be downloaded within {_PATIENCE:g} s", child.log)
        time.sleep(0.5)
    if child.exit_code != 0:
        lines = child.log.read_text(errors="replace").splitlines()
        problems = [line.strip() for line in lines if "module not found" in line or "error" in line]
        raise ServiceError(f"the {set_name} jars could not be downloaded; is this machine online?", child.log, problems[-10:])
    note(f"{set_name} jars: {count} of {count} downloaded")


def _ivy_file(set_name: str, pins: Sequence[Pin]) -> str:
    wanted = "\n".join(
        f'    <dependency org="{pin.group}" name="{pin.artifact}" rev="{pin.version}" transitive="false" conf="default"/>'
        for pin in pins
    )
    return f"""<ivy-module version="2.0">
  <info organisation="stream-bench" module="{set_name}"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default->default">
{wanted}
  </dependencies>
</ivy-module>
"""


def _ivy() -> Path:
    """PySpark's own Ivy; found without importing PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UsageError('the embedded services need the Ivy that PySpark ships; run: pip install "stream-bench[spark]"')
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar"))
    if not found:
        raise ServiceError(f"PySpark's jars folder has no Ivy: {Path(spec.origin).parent / 'jars'}")
    return found[-1]
