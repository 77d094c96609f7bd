"""Jars of the embedded services, downloaded with the Apache Ivy that PySpark ships and checked against jars.lock."""

import hashlib
import importlib.util
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from bench.errors import NotReadyError, ServiceError, UsageError
from bench.services.java import java
from bench.system.child import Child
from bench.system.file_lock import hold_lock
from bench.system.supervisor import Supervisor

LOCK = Path(__file__).with_name("jars.lock")

_TIMEOUT_S = 900.0
"""Seconds for one set of jars, waiting for another process's download included."""

_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false" checksums=""/></resolvers>
</ivysettings>
"""
"""Ivy's ordinary repository without its metadata: the lock file lists every jar, and 46 jars take 6 s instead of 30 s.
"""

_MAX_PROCESSES, _JARS_PER_PROCESS = 4, 20
"""Ivy downloads one jar after the other: a large set is shared among several processes, one for so many jars."""


class Pin(NamedTuple):
    """One jar of the lock file."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""
    """such as the machine that native code in it is for"""

    @property
    def file(self) -> str:
        """Return the name of the jar's file."""
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + ".jar"


def download_jars(set_name: str, cache: Path, note: Callable[[str], None], *, lock: Path = LOCK) -> Path:
    """Download the jars of a set that the cache does not have, one process at a time; return their folder.

    It has exactly these jars.

    Raises:
        UsageError: PySpark or Java is missing.
        ServiceError: a jar cannot be had or is not the one that was pinned.
    """
    pins = read_pins(set_name, lock)
    folder = _folder(set_name, cache, pins)
    if _complete(folder, pins):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    waiting = f"{set_name} jars: another process is downloading them"
    with hold_lock(folder.with_suffix(".lock"), _TIMEOUT_S, lambda: note(waiting)):
        if not _complete(folder, pins):
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)
            _download(set_name, pins, part, note)
            verify(part / "jars", pins)
            (part / "jars").rename(folder)  # the last step: what is there under its name is complete
            shutil.rmtree(part)
    return folder


def has_jars(set_name: str, cache: Path, *, lock: Path = LOCK) -> bool:
    """Return whether the jars of a set are in the cache."""
    pins = read_pins(set_name, lock)
    return _complete(_folder(set_name, cache, pins), pins)


def folder_of(set_name: str, cache: Path, *, lock: Path = LOCK) -> Path:
    """Return the folder of a set's jars in a cache, whether or not it exists: a mirror may put them there."""
    return _folder(set_name, cache, read_pins(set_name, lock))


def read_pins(set_name: str, lock: Path = LOCK) -> list[Pin]:
    """Return the jars of a set as the lock file lists them. Raises UsageError where it does not list that set."""
    text = lock.read_text(encoding="utf-8")
    try:
        sets = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  it makes strings only, also of 12345 and 1e5
    except yaml.YAMLError:
        sets = None
    if not isinstance(sets, dict) or not isinstance(entries := sets.get(set_name), dict):
        raise UsageError(f"{lock}: lists no set of jars named {set_name!r}, as group:artifact:version: SHA-256")
    return [_pin(*coordinates.split(":"), sha256=sha256) for coordinates, sha256 in entries.items()]


def _pin(group: str, artifact: str, version: str, classifier: str = "", *, sha256: str) -> Pin:
    return Pin(group, artifact, version, sha256, classifier)


def verify(folder: Path, pins: Sequence[Pin]) -> None:
    """Raise ServiceError, naming the file, unless every pinned jar is there and is the one that was pinned."""
    for pin in pins:
        path = folder / pin.file
        if not path.is_file():
            raise ServiceError(
                f"{pin.file} was not downloaded to {folder}; is {pin.group}:{pin.artifact} on your registry?"
            )
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != pin.sha256:
            raise ServiceError(f"{path} is not the pinned jar: its SHA-256 is {found}, expected {pin.sha256}")


def _folder(set_name: str, cache: Path, pins: Sequence[Pin]) -> Path:
    """Return the folder of a set; other pins, another folder."""
    digest = hashlib.sha256("\n".join(map(":".join, pins)).encode()).hexdigest()
    return cache.absolute() / "jars" / f"{set_name}-{digest[:12]}"


def _complete(folder: Path, pins: Sequence[Pin]) -> bool:
    """Return whether the folder has all files; what they contain was checked before the folder got its name."""
    return all((folder / pin.file).is_file() for pin in pins)


def _download(set_name: str, pins: Sequence[Pin], part: Path, note: Callable[[str], None]) -> None:
    """Have Ivy put the jars into part/jars, several processes side by side; what else they make stays in `part`."""
    part.mkdir()
    (part / "settings.xml").write_text(_SETTINGS, encoding="utf-8")
    at_once = min(_MAX_PROCESSES, 1 + len(pins) // _JARS_PER_PROCESS)
    with Supervisor(part / "running", part / "logs") as supervisor:
        children = [
            _ivy_child(supervisor, set_name, pins[share::at_once], part / f"share-{share}") for share in range(at_once)
        ]
        _watch(children, set_name, len(pins), note)


def _ivy_child(supervisor: Supervisor, set_name: str, pins: Sequence[Pin], share: Path) -> Child:
    """Start an Ivy that downloads some of a set's jars."""
    share.mkdir()
    (share / "ivy.xml").write_text(_ivy_file(set_name, pins), encoding="utf-8")
    options = {
        "-settings": share.parent / "settings.xml",
        "-cache": share / "cache",
        "-ivy": share / "ivy.xml",
        "-retrieve": share.parent / "jars" / "[artifact]-[revision](-[classifier]).[ext]",
        "-confs": "default",
    }
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", str(_ivy()), "org.apache.ivy.Main"]
    return supervisor.start(
        [*command, *(str(word) for option in options.items() for word in option)], name="ivy", role="source"
    )


def _watch(children: Sequence[Child], set_name: str, count: int, note: Callable[[str], None]) -> None:
    """Note the number of downloaded jars until all are there."""
    deadline, noted = time.monotonic() + _TIMEOUT_S, -1
    while any(child.alive() for child in children):
        downloaded = sum(child.log.read_text(errors="replace").count("[SUCCESSFUL ]") for child in children)
        if downloaded != noted:
            note(f"{set_name} jars: {downloaded} of {count} downloaded")
        noted = downloaded
        if time.monotonic() >= deadline:
            raise NotReadyError(f"the {set_name} jars could not be downloaded within {_TIMEOUT_S:g} s", children[0].log)
        time.sleep(0.5)
    for child in children:
        if child.exit_code != 0:
            lines = child.log.read_text(errors="replace").splitlines()
            problems = [line.strip() for line in lines if "module not found" in line or "error" in line]
            raise ServiceError(
                f"the {set_name} jars could not be downloaded; is this machine online?", child.log, problems[-10:]
            )
    note(f"{set_name} jars: {count} of {count} downloaded")


def _ivy_file(set_name: str, pins: Sequence[Pin]) -> str:
    wanted = "\n".join(map(_dependency, pins))
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="stream-bench" module="{set_name}"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default->default">
{wanted}
  </dependencies>
</ivy-module>
"""


def _dependency(pin: Pin) -> str:
    """Return the line of a pin, which asks for nothing that the jar itself needs."""
    of_machine = (
        f'<artifact name="{pin.artifact}" type="jar" ext="jar" m:classifier="{pin.classifier}"/>'
        if pin.classifier
        else ""
    )
    head = f'<dependency org="{pin.group}" name="{pin.artifact}" rev="{pin.version}" transitive="false" conf="default"'
    return f"    {head}>{of_machine}</dependency>"


def _ivy() -> Path:
    """Return PySpark's own Ivy; found without importing PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UsageError(
            'the embedded services need the Ivy that PySpark ships; run: pip install "stream-bench[spark]"'
        )
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar"))
    if not found:
        raise ServiceError(f"PySpark's jars folder has no Ivy: {Path(spec.origin).parent / 'jars'}")
    return found[-1]
