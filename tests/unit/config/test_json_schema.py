"""The published JSON Schemas agree with the types, and refuse the mistakes that a schema can express."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # no stubs in the constraints

from bench.config import json_schema
from bench.config.scenario import Scenario
from bench.config.validation import parse_scenario
from bench.config.yaml_document import Document, read_document
from bench.errors import UsageError
from bench.plugins import schemas

HERE = Path(__file__).parent
SCENARIOS = sorted((HERE.parents[2] / "scenarios").glob("*.yaml"))
WRONG = sorted((HERE / "wrong").glob("*/*.yaml"))


def published(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((schemas.FOLDER / name).read_text(encoding="utf-8")))


def schema_result(path: Path) -> str:
    """Return the result of the schema for the values of a file; "unseen" if it has no values."""
    name = "site.schema.json" if path.parent.name == "sites" else "scenario.schema.json"
    try:
        return "passes" if published(name).is_valid(read_document(path).values) else "refuses"
    except UsageError:
        return "unseen"


@pytest.mark.parametrize("name", sorted(schemas.schema_types()))
def test_the_published_schema_is_that_of_the_types(name: str) -> None:
    """`python -m bench.plugins.schemas` would change nothing."""
    assert (schemas.FOLDER / name).read_text(encoding="utf-8") == json_schema.text_of(schemas.schema_types()[name])


def test_the_files_can_be_regenerated(tmp_path: Path) -> None:
    """The published files are those that `python -m bench.plugins.schemas` writes."""
    schemas.write(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        path.name: path.read_text() for path in schemas.FOLDER.iterdir()
    }


@pytest.mark.parametrize("name", sorted(schemas.schema_types()))
def test_the_published_schema_is_a_schema(name: str) -> None:
    """It is valid under the meta-schema of its draft."""
    Draft202012Validator.check_schema(json.loads((schemas.FOLDER / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_our_own_scenarios_are_valid_under_the_schema(path: Path) -> None:
    """The schema accepts the scenarios that the validation accepts."""
    assert not list(published("scenario.schema.json").iter_errors(read_document(path).values))


@pytest.mark.parametrize("path", WRONG, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_schema_refuses_what_it_can_express(path: Path) -> None:
    """The schema refuses a wrong file as well, unless the head of the file excludes it."""
    says = next(line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# schema: "))
    assert says == f"# schema: {schema_result(path)}"


def test_the_defaults_of_the_schema_are_those_of_the_type() -> None:
    """A scenario that writes every default out is the scenario that leaves them out."""
    least: dict[str, object] = {"name": "least", "systems": ["a/b"], "grid": {"message_size": ["1 kB"]}}
    parts = json_schema.schema_of(Scenario)["$defs"]
    defaults = {key: part["default"] for key, part in parts["Scenario"]["properties"].items() if "default" in part}
    grid = {"message_size": ["1 kB"], "cpu_cost": parts["Grid"]["properties"]["cpu_cost"]["default"]}
    assert parse_scenario(Document("", defaults | least | {"grid": grid})) == parse_scenario(Document("", least))
