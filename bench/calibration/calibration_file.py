"""The file calibration.json: the maximum rates of the load generator and of baseline producers on one machine."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct

from bench.model.message_keys import Keys
from bench.model.message_sizes import Sizes
from bench.plugins.packages import installed_packages
from bench.storage.atomic_file import replace_file
from bench.system import host_info

FORMAT = 1
FILE = "calibration.json"


class Ceiling(Struct, frozen=True):
    """The confirmed rates, in messages/s, of the load generator or of a baseline producer; one for each repetition."""

    source: str
    message_bytes: int
    by: str
    entropy: float
    workers: int
    settings: dict[str, Any]
    """of the source"""
    rates: list[float]
    sizes: Sizes | None = None
    keys: Keys | None = None

    @property
    def hz(self) -> float:
        """Return the median."""
        return median(self.rates)


class Calibration(Struct, frozen=True):
    """The content of the file: the machine, the versions, and the rates."""

    format: int
    cores: int
    versions: dict[str, str]
    ceilings: list[Ceiling]


def read_calibration(folder: Path) -> list[Ceiling]:
    """Return the rates that the file in a run's folder has; nothing where there is no such file."""
    path = folder / FILE
    return msgspec.json.decode(path.read_bytes(), type=Calibration).ceilings if path.exists() else []


def write_calibration(folder: Path, ceilings: Sequence[Ceiling]) -> None:
    """Replace the file in a folder in one step; it also gets the versions of all installed plugins' packages."""
    packages = installed_packages()
    whole = Calibration(FORMAT, host_info.cores(), host_info.versions(packages), list(ceilings))
    replace_file(folder / FILE, msgspec.json.format(msgspec.json.encode(whole), indent=1))
