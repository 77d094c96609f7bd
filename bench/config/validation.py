"""Strict validation of scenario and site files; each mistake is one line with its origin and the allowed values.

A `Document` (bench.config.yaml_document), with `--set` changes in it, is converted by type. Later checks (a system
that is not installed, the settings of a plugin) report a mistake with `error_at`.
"""

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import reduce
from itertools import islice
from typing import TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from bench.config.address import HostPort
from bench.config.elasticity import MAX_BURSTS, LoadPart
from bench.config.field_types import choices, describe_allowed, is_quantity, is_struct, unwrap
from bench.config.scenario import Scenario
from bench.config.yaml_document import (
    MAX_DEPTH,
    MAX_SHOWN_CHARACTERS,
    Document,
    Values,
    YamlParser,
    describe,
    join_path,
    nearest_name,
    suggestion,
)
from bench.errors import UsageError
from bench.model.message_sizes import MessageSize, Mix
from bench.model.message_sizes import find_mistakes as mix_mistakes
from bench.units import Quantity, correct_case, rate_text, seconds_text, size_text

MAX_MISTAKES = 20

StructT = TypeVar("StructT", bound=Struct)


class _Mistake(Struct, frozen=True):
    path: str
    found: str
    allowed: str
    names: tuple[str, ...] = ()
    """the names that are allowed there; the nearest one is suggested"""
    written: str = ""
    """the text in place of one of the names"""


def parse_site(document: Document, kind: type[StructT]) -> StructT:
    """Convert a document to the type of a site file (bench.config.site.file_type).

    Raises:
        UsageError: The document is wrong; one line for each mistake.
    """
    return _convert(kind, document.values, "", document)


def read_address(text: str) -> str:
    """Return an address given by the user if it is host:port; raise UsageError otherwise."""
    try:
        return msgspec.convert(text, HostPort)
    except msgspec.ValidationError:
        raise UsageError(
            f"found {describe(text)}; allowed: host:port, such as 10.0.0.5:5557 or [fd00::5]:5557"
        ) from None


def parse_scenario(document: Document) -> Scenario:
    """Convert a document to a scenario.

    Raises:
        UsageError: The document is wrong; one line for each mistake.
    """
    document = _with_sizes_listed(document)
    scenario = _convert(Scenario, document.values, "", document)
    sizes = [int(size) for size in scenario.grid.message_size]
    for index, size in enumerate(sizes):
        if size in sizes[:index]:
            found = f"a mean of {size_text(size)}, which is another size of the grid"
            line = _Mistake(f"grid.message_size[{index}]", found, "sizes and means of which no two are the same")
            raise UsageError(_line(document, line))
    costs = [seconds_text(cost) for cost in scenario.grid.cpu_cost]
    for index, cost in enumerate(costs):
        if cost in costs[:index]:
            found, allowed = (
                f"a second cost of about {cost}",
                "costs that differ in their first three digits, which name files",
            )
            raise UsageError(_line(document, _Mistake(f"grid.cpu_cost[{index}]", found, allowed)))
    search = scenario.search
    lowest, highest = rate_text(search.lowest), rate_text(search.highest)
    if not search.lowest < search.highest:
        raise error_at(document, "search.highest", highest, allowed=f"a rate above search.lowest ({lowest})")
    if search.start is not None and not search.lowest <= search.start <= search.highest:
        allowed = f"a rate from search.lowest ({lowest}) to search.highest ({highest})"
        raise error_at(document, "search.start", rate_text(search.start), allowed=allowed)
    _check_kind(document, scenario)
    return scenario


def _check_kind(document: Document, scenario: Scenario) -> None:
    """Raise UsageError where the kind of a scenario does not go with its other parts."""
    elasticity, grid = scenario.elasticity, scenario.grid
    if (scenario.kind == "elasticity") != (elasticity is not None):
        allowed = "kind: elasticity together with a mapping elasticity, or neither of them"
        raise error_at(document, "kind", scenario.kind, allowed=allowed)
    if elasticity is None:
        return
    if len(grid.message_size) * len(grid.cpu_cost) > 1:
        found = f"{len(grid.message_size)} sizes and {len(grid.cpu_cost)} costs"
        raise error_at(document, "grid", found, allowed="one message size and one CPU cost, with kind: elasticity")
    if elasticity.start > elasticity.most:
        allowed = f"at most elasticity.most ({elasticity.most})"
        raise error_at(document, "elasticity.start", elasticity.start, allowed=allowed)
    if elasticity.seconds < 2 * elasticity.interval:
        allowed = f"parts that last for {seconds_text(2 * elasticity.interval)} or more together, two intervals"
        raise error_at(document, "elasticity.load", seconds_text(elasticity.seconds), allowed=allowed)
    if scenario.load.arrivals != "constant":
        allowed = "constant, with kind: elasticity, whose load is elasticity.load"
        raise error_at(document, "load.arrivals", scenario.load.arrivals, allowed=allowed)
    for index, part in enumerate(elasticity.load):
        _check_load_part(document, f"elasticity.load[{index}]", part)


def _check_load_part(document: Document, path: str, part: LoadPart) -> None:
    """Raise UsageError where a part of a load over time lacks a key of its shape, or has one that it does not use."""
    needs = {"step": None, "trace": "trace"}.get(part.shape, "to")
    if needs is not None and getattr(part, needs) is None:
        raise error_at(document, f"{path}.{needs}", None, allowed=f"{needs}, which the shape {part.shape} needs")
    used = {needs, "period"} if part.shape == "bursts" else {needs}
    for key in ("to", "period", "trace"):
        value = getattr(part, key)
        if value is not None and key not in used:
            found = value if key == "trace" else rate_text(value) if key == "to" else seconds_text(value)
            raise error_at(document, f"{path}.{key}", found, allowed=f"no {key} with the shape {part.shape}")
    if part.period is not None and part.time > MAX_BURSTS * part.period:
        allowed = f"{seconds_text(part.time / MAX_BURSTS)} or more: at most {MAX_BURSTS} periods"
        raise error_at(document, f"{path}.period", seconds_text(part.period), allowed=allowed)


def _with_sizes_listed(document: Document) -> Document:
    """Return the document with a single distribution of message sizes in a list."""
    grid = document.values.get("grid")
    if not isinstance(grid, dict) or not isinstance(grid.get("message_size"), dict):
        return document
    within = re.compile(r"(grid\.message_size)\b")
    origins = {within.sub(r"\1[0]", path): origin for path, origin in document.origins.items()} | dict(document.origins)
    return Document(
        document.file, {**document.values, "grid": {**grid, "message_size": [grid["message_size"]]}}, origins
    )


def convert_settings(
    kind: type[StructT], raw: Mapping[str, object], path: str, document: Document | None = None
) -> StructT:
    """Convert the settings of a plugin to its type.

    Args:
        kind: The type that the plugin publishes.
        raw: The values as written.
        path: Their path in the scenario, "settings.spark".
        document: The scenario's document, which knows their lines.

    Raises:
        UsageError: A value is wrong; one line for each mistake.
    """
    return _convert(kind, dict(raw), path, document or Document("", {}))


def error_at(document: Document, path: str, found: object, *, allowed: str, names: Sequence[str] = ()) -> UsageError:
    """Return the error for a wrong value.

    Args:
        document: The document, which knows the line of the value.
        path: Path of the value, such as "grid.message_size[0]".
        found: The value.
        allowed: A description of the values that are allowed.
        names: The names that are allowed; the error suggests the nearest one.
    """
    written = found if isinstance(found, str) else ""
    return UsageError(_line(document, _Mistake(path, describe(found), allowed, tuple(names), written)))


def apply_changes(document: Document, changes: Sequence[str]) -> Document:
    """Return a document with `--set` changes, each "PATH=VALUE"; commas separate the items of a list.

    Raises:
        UsageError: A change is not PATH=VALUE, or its value is not plain YAML.
    """
    for change in changes:
        document = _apply_change(document, change)
    return document


def _apply_change(document: Document, change: str) -> Document:
    option = f"--set {change if change.isprintable() and len(change) <= MAX_SHOWN_CHARACTERS else describe(change)}"
    path, equals, text = (part.strip() for part in change.partition("="))
    if not equals or not re.fullmatch(rf"[\w\-]+(\.[\w\-]+){{0,{MAX_DEPTH}}}", path):
        raise UsageError(f"{option}: found no PATH=VALUE; allowed: PATH=VALUE, such as search.precision=10%")
    parser = YamlParser(lambda _: option)
    values = deepcopy(document.values)
    new = _put(values, path.split("."), parser.parse(f"[{text}]" if _wants_list(path, text) else text, path))
    replaced = re.compile(rf"{re.escape(new)}($|[.\[])")
    kept = {old: origin for old, origin in document.origins.items() if not replaced.match(old)}
    return Document(document.file, values, kept | {new: option, path: option} | parser.origins)


def _put(values: Values, keys: list[str], value: object) -> str:
    """Set a value, create the mappings that lead to it, and return the path of the outermost new value."""
    first, *rest = keys
    inner = values.get(first)
    if rest and isinstance(inner, dict):
        return f"{first}.{_put(inner, rest, value)}"
    for key in reversed(rest):
        value = {key: value}
    values[first] = value
    return first


def _wants_list(path: str, text: str) -> bool:
    """Return True if the scenario has a list at this path and the text is not one already."""
    kind: object = Scenario
    for key in path.split("."):
        fields = msgspec.structs.fields(kind) if is_struct(kind) else ()
        kind = next((field.type for field in fields if field.name == key), None)
    return get_origin(unwrap(kind)[0]) is tuple and not text.startswith("[")


def _convert(kind: type[StructT], values: Values, path: str, document: Document) -> StructT:
    mistakes = list(islice(_mistakes(kind, values, path), MAX_MISTAKES))
    if mistakes:
        raise UsageError("\n".join(_line(document, mistake) for mistake in mistakes))
    try:
        return msgspec.convert(values, kind, dec_hook=_quantity)
    except msgspec.ValidationError as error:  # a rule of the type's own __post_init__
        raise UsageError(_line(document, _Mistake(path, f"that {error}", "values as in docs/reference.md"))) from None


def _quantity(kind: type[Quantity], value: object) -> Quantity:
    return kind.read(value)


def _mistakes(kind: object, value: object, path: str) -> Iterator[_Mistake]:
    """Yield every deviation of a plain value from its type."""
    bare, meta, optional = unwrap(kind)
    if value is None and optional:
        return
    if is_struct(bare) and isinstance(value, dict):
        yield from _struct_mistakes(bare, value, path)
    elif bare is MessageSize and isinstance(value, dict):
        yield from _mix_mistakes(value, path)
    elif get_origin(bare) is tuple and isinstance(value, list):
        yield from _list_mistakes(bare, meta, value, path)
    elif get_origin(bare) is Mapping and isinstance(value, dict):
        for key, inner in value.items():
            yield from _mistakes(get_args(bare)[1], inner, join_path(path, key))
    else:
        yield from _leaf_mistakes(kind, value, path)


def _struct_mistakes(kind: type[Struct], value: Values, path: str) -> Iterator[_Mistake]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    misspelt = set()
    for key, inner in value.items():
        if key in fields:
            yield from _mistakes(fields[key].type, inner, join_path(path, key))
        else:
            misspelt.add(nearest_name(key, tuple(fields)))
            yield _Mistake(join_path(path, key), "an unknown key", ", ".join(fields), tuple(fields), key)
    for name, field in fields.items():
        if field.required and name not in value and name not in misspelt:
            yield _Mistake(join_path(path, name), "nothing", describe_allowed(field.type))


def _mix_mistakes(value: Values, path: str) -> Iterator[_Mistake]:
    """Yield the mistakes of a distribution of message sizes: those of its types first, then those of its rules."""
    mistakes = list(_struct_mistakes(Mix, value, path))
    yield from mistakes
    if not mistakes:
        for inner, found, right in mix_mistakes(value):
            yield _Mistake(reduce(join_path, inner, path), found, right)


def _list_mistakes(bare: object, meta: Meta, value: list[object], path: str) -> Iterator[_Mistake]:
    inner = get_args(bare)[0]
    if len(value) < (meta.min_length or 0):
        yield _Mistake(path, "an empty list", f"a list of at least {meta.min_length}, each {describe_allowed(inner)}")
    if meta.max_length is not None and len(value) > meta.max_length:
        yield _Mistake(path, f"a list of {len(value)}", f"a list of at most {meta.max_length}")
    earlier = set()
    for index, item in enumerate(value):
        mistakes = list(_mistakes(inner, item, f"{path}[{index}]"))
        yield from mistakes
        if mistakes or not (meta.extra or {}).get("unique"):
            continue
        read = msgspec.convert(item, inner, dec_hook=_quantity)
        if read in earlier:
            yield _Mistake(f"{path}[{index}]", f"{describe(item)} a second time", "each once")
        earlier.add(read)


def _leaf_mistakes(kind: object, value: object, path: str) -> Iterator[_Mistake]:
    bare, meta, _ = unwrap(kind)
    try:
        read = msgspec.convert(value, kind, dec_hook=_quantity)
    except msgspec.ValidationError:
        names = correct_case(bare, value) if is_quantity(bare) else choices(bare)
        yield _Mistake(path, describe(value), describe_allowed(kind), names, str(value))
        return
    for name, within in (("least", operator.ge), ("over", operator.gt), ("most", operator.le)):
        limit = (meta.extra or {}).get(name)
        if limit is not None and not within(read, bare.read(limit)):
            yield _Mistake(path, describe(value), describe_allowed(kind))
            return


def _line(document: Document, mistake: _Mistake) -> str:
    origin = document.origin(mistake.path)
    path = "" if re.match(rf"--set {re.escape(mistake.path)}\s*=", origin) else mistake.path
    place = ": ".join(part for part in (origin, path) if part)
    nearest = suggestion(mistake.written, mistake.names)
    return f"{place}: found {mistake.found}; allowed: {mistake.allowed}{nearest}"
