"""The Java that the embedded services and Spark run on."""

import functools
import os
import re
import shutil
from pathlib import Path

from bench.errors import UsageError
from bench.system.supervisor import run_tool

MIN_VERSION = 17
"""What Spark 4 and Kafka 4 need."""

_REMEDY = "install one (Debian, Ubuntu: sudo apt-get install -y openjdk-17-jre-headless) or let JAVA_HOME name it"


@functools.cache
def java() -> str:
    """Return the path of the java command, of JAVA_HOME or else of the PATH.

    Raises:
        UsageError: there is none that is new enough.
    """
    home = os.environ.get("JAVA_HOME")  # read here because PySpark and every launcher of Java read it at the same place
    found = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if found is None:
        raise UsageError(f"Java {MIN_VERSION} or later is needed and there is none; {_REMEDY}")
    version = _version_in(run_tool([found, "-version"]))
    if version < MIN_VERSION:
        raise UsageError(f"Java {MIN_VERSION} or later is needed and {found} is Java {version}; {_REMEDY}")
    return found


def _version_in(text: str) -> int:
    """Return the feature release in what `java -version` says: 17 in "17.0.15", 8 in "1.8.0_452".

    0 where it says none.
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else 0
