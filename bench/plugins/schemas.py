"""The published JSON Schemas of scenarios, sites and results.

`python -m bench.plugins.schemas` writes bench/config/schemas/ again.
"""

from pathlib import Path

from msgspec import Struct

from bench.config import json_schema
from bench.config.scenario import Scenario
from bench.model.measurement import Result
from bench.plugins.registry import site_file_type

FOLDER = Path(json_schema.__file__).parent / "schemas"


def schema_types() -> dict[str, type[Struct]]:
    """Return the type of each published file, by its name; that of a site has the sections of all installed plugins."""
    return {
        "scenario.schema.json": Scenario,
        "site.schema.json": site_file_type(),
        "result.schema.json": Result,
    }


def write(folder: Path) -> None:
    """Write every schema into a folder."""
    for name, kind in schema_types().items():
        (folder / name).write_text(json_schema.text_of(kind), encoding="utf-8")


if __name__ == "__main__":
    write(FOLDER)
