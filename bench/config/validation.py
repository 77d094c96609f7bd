"""Scenario and site files, read strictly: every mistake is one line that says where it is, what was found and what is allowed.

A `Document` (bench.config.yaml_document), with `--set` changes in it, is converted by type. Whoever finds a mistake later (a system that is
not installed, a room's settings) names its line with `located`.
"""

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import reduce
from itertools import islice
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeGuard, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from bench.config.scenario import Scenario
from bench.config.site import Address
from bench.config.yaml_document import (
    DEEPEST,
    MAX_SHOWN,
    Document,
    Found,
    Values,
    meant,
    nearest_of,
    read_document,
    shown,
    under,
)
from bench.errors import UsageError
from bench.model.message_sizes import MessageSize, Mix
from bench.model.message_sizes import find_mistakes as mix_mistakes
from bench.units import Quantity, rate_text, respelt, size_text

MAX_MISTAKES = 20

T = TypeVar("T", bound=Struct)


class _Mistake(Struct, frozen=True):
    path: str
    found: str
    allowed: str
    names: tuple[str, ...] = ()
    """one of which may have been meant"""
    meant_by: str = ""
    """what was written where one of the names belongs"""


def read_scenario(path: Path, changes: Sequence[str] = ()) -> Scenario:
    """The scenario of a file, with `--set` changes such as "search.precision=10 %"; UsageError, a line per mistake, else."""
    return scenario_of(changed(read_document(path), changes))


def read_site(path: Path, kind: type[T]) -> T:
    """Return the site file as its type (bench.config.site.file_type). Raises UsageError, a line per mistake."""
    document = read_document(path)
    return _converted(kind, document.values, "", document)


def read_address(text: str) -> str:
    """A host:port that somebody gave; UsageError otherwise."""
    try:
        return msgspec.convert(text, Address)
    except msgspec.ValidationError:
        raise UsageError(f"found {shown(text)}; allowed: host:port, such as 10.0.0.5:5557 or [fd00::5]:5557") from None


def scenario_of(document: Document) -> Scenario:
    """The scenario that a document says; UsageError, a line per mistake, otherwise."""
    document = _with_sizes_listed(document)
    scenario = _converted(Scenario, document.values, "", document)
    sizes = [int(size) for size in scenario.grid.message_size]
    for index, size in enumerate(sizes):
        if size in sizes[:index]:
            found = f"a mean of {size_text(size)}, which is another size of the grid"
            line = _Mistake(f"grid.message_size[{index}]", found, "sizes and means of which no two are the same")
            raise UsageError(_line(document, line))
    search = scenario.search
    lowest, highest = rate_text(search.lowest), rate_text(search.highest)
    if not search.lowest < search.highest:
        raise located(document, "search.highest", highest, allowed=f"a rate above search.lowest ({lowest})")
    if search.start is not None and not search.lowest <= search.start <= search.highest:
        allowed = f"a rate from search.lowest ({lowest}) to search.highest ({highest})"
        raise located(document, "search.start", rate_text(search.start), allowed=allowed)
    return scenario


def _with_sizes_listed(document: Document) -> Document:
    """The document, in which a single distribution of message sizes stands in a list like any sizes."""
    grid = document.values.get("grid")
    if not isinstance(grid, dict) or not isinstance(grid.get("message_size"), dict):
        return document
    within = re.compile(r"(grid\.message_size)\b")
    origins = {within.sub(r"\1[0]", path): origin for path, origin in document.origins.items()} | dict(document.origins)
    return Document(
        document.file, {**document.values, "grid": {**grid, "message_size": [grid["message_size"]]}}, origins
    )


def settings_as(kind: type[T], raw: Mapping[str, object], where: str, document: Document | None = None) -> T:
    """A room's part of the settings (`where` it stands: "settings.spark") as the room's type; UsageError otherwise."""
    return _converted(kind, dict(raw), where, document or Document("", {}))


def located(document: Document, path: str, found: object, *, allowed: str, names: Sequence[str] = ()) -> UsageError:
    """The error for a value at a path: what was found, what is allowed, and the nearest of the names that could be meant."""
    meant_by = found if isinstance(found, str) else ""
    return UsageError(_line(document, _Mistake(path, shown(found), allowed, tuple(names), meant_by)))


def changed(document: Document, changes: Sequence[str]) -> Document:
    """A document with `--set` changes, "PATH=VALUE" each; a comma makes a list where the scenario has one."""
    for change in changes:
        document = _with(document, change)
    return document


def _with(document: Document, change: str) -> Document:
    option = f"--set {change if change.isprintable() and len(change) <= MAX_SHOWN else shown(change)}"
    path, equals, text = (part.strip() for part in change.partition("="))
    if not equals or not re.fullmatch(rf"[\w\-]+(\.[\w\-]+){{0,{DEEPEST}}}", path):
        raise UsageError(f"{option}: found no PATH=VALUE; allowed: PATH=VALUE, such as search.precision=10%")
    found = Found(lambda _: option)
    values = deepcopy(document.values)
    new = _put(values, path.split("."), found.value(f"[{text}]" if _wants_list(path, text) else text, path))
    replaced = re.compile(rf"{re.escape(new)}($|[.\[])")
    cached_resource = {known: origin for known, origin in document.origins.items() if not replaced.match(known)}
    return Document(document.file, values, cached_resource | {new: option, path: option} | found.origins)


def _put(values: Values, keys: list[str], value: object) -> str:
    """The path of the outermost thing that is new, once a value is where its keys lead; mappings that are missing are made."""
    first, *rest = keys
    inner = values.get(first)
    if rest and isinstance(inner, dict):
        return f"{first}.{_put(inner, rest, value)}"
    for key in reversed(rest):
        value = {key: value}
    values[first] = value
    return first


def _wants_list(path: str, text: str) -> bool:
    """Whether the scenario has a list at this path, and the text is not one already."""
    kind: object = Scenario
    for key in path.split("."):
        fields = msgspec.structs.fields(kind) if _is_struct(kind) else ()
        kind = next((field.type for field in fields if field.name == key), None)
    return get_origin(_bare(kind)[0]) is tuple and not text.startswith("[")


def _converted(kind: type[T], values: Values, where: str, document: Document) -> T:
    mistakes = list(islice(_mistakes(kind, values, where), MAX_MISTAKES))
    if mistakes:
        raise UsageError("\n".join(_line(document, mistake) for mistake in mistakes))
    try:
        return msgspec.convert(values, kind, dec_hook=_quantity)
    except msgspec.ValidationError as error:  # a rule of the type's own __post_init__
        raise UsageError(_line(document, _Mistake(where, f"that {error}", "what its documentation says"))) from None


def _quantity(kind: type[Quantity], value: object) -> Quantity:
    return kind.read(value)


def _mistakes(kind: object, value: object, path: str) -> Iterator[_Mistake]:
    """Everything in a plain value that is not as its type says."""
    bare, meta, optional = _bare(kind)
    if value is None and optional:
        return
    if _is_struct(bare) and isinstance(value, dict):
        yield from _struct_mistakes(bare, value, path)
    elif bare is MessageSize and isinstance(value, dict):
        yield from _mix_mistakes(value, path)
    elif get_origin(bare) is tuple and isinstance(value, list):
        yield from _list_mistakes(bare, meta, value, path)
    elif get_origin(bare) is Mapping and isinstance(value, dict):
        for key, inner in value.items():
            yield from _mistakes(get_args(bare)[1], inner, under(path, key))
    else:
        yield from _leaf_mistakes(kind, value, path)


def _struct_mistakes(kind: type[Struct], value: Values, path: str) -> Iterator[_Mistake]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    meant = set()
    for key, inner in value.items():
        if key in fields:
            yield from _mistakes(fields[key].type, inner, under(path, key))
        else:
            meant.add(nearest_of(key, tuple(fields)))
            yield _Mistake(under(path, key), "an unknown key", ", ".join(fields), tuple(fields), key)
    for name, field in fields.items():
        if field.required and name not in value and name not in meant:
            yield _Mistake(under(path, name), "nothing", allowed(field.type))


def _mix_mistakes(value: Values, path: str) -> Iterator[_Mistake]:
    """Everything that is wrong with a distribution of message sizes: its types first, then its rules."""
    mistakes = list(_struct_mistakes(Mix, value, path))
    yield from mistakes
    if not mistakes:
        for inner, found, right in mix_mistakes(value):
            yield _Mistake(reduce(under, inner, path), found, right)


def _list_mistakes(bare: object, meta: Meta, value: list[object], path: str) -> Iterator[_Mistake]:
    inner = get_args(bare)[0]
    if len(value) < (meta.min_length or 0):
        yield _Mistake(path, "an empty list", f"a list of at least {meta.min_length}, each {allowed(inner)}")
    if meta.max_length is not None and len(value) > meta.max_length:
        yield _Mistake(path, f"a list of {len(value)}", f"a list of at most {meta.max_length}")
    seen = set()
    for index, item in enumerate(value):
        mistakes = list(_mistakes(inner, item, f"{path}[{index}]"))
        yield from mistakes
        if mistakes or not (meta.extra or {}).get("unique"):
            continue
        read = msgspec.convert(item, inner, dec_hook=_quantity)
        if read in seen:
            yield _Mistake(f"{path}[{index}]", f"{shown(item)} a second time", "each once")
        seen.add(read)


def _leaf_mistakes(kind: object, value: object, path: str) -> Iterator[_Mistake]:
    bare, meta, _ = _bare(kind)
    try:
        read = msgspec.convert(value, kind, dec_hook=_quantity)
    except msgspec.ValidationError:
        names = respelt(bare, value) if _is_quantity(bare) else _choices(bare)
        yield _Mistake(path, shown(value), allowed(kind), names, str(value))
        return
    for name, within in (("least", operator.ge), ("over", operator.gt), ("most", operator.le)):
        limit = (meta.extra or {}).get(name)
        if limit is not None and not within(read, bare.read(limit)):
            yield _Mistake(path, shown(value), allowed(kind))
            return


def _choices(bare: object) -> tuple[str, ...]:
    return tuple(str(name) for name in get_args(bare)) if get_origin(bare) is Literal else ()


def _bare(kind: object) -> tuple[Any, Meta, bool]:
    """A type without annotation and None; what the annotation says; whether None is allowed."""
    meta, optional = Meta(), False
    while get_origin(kind) in (Annotated, Union, UnionType):
        if get_origin(kind) is Annotated:
            kind, meta = get_args(kind)[:2]
            continue
        others = [other for other in get_args(kind) if other is not NoneType]
        optional = len(others) < len(get_args(kind))
        if len(others) > 1:
            break
        kind = others[0]
    return kind, meta, optional


def _is_struct(kind: object) -> TypeGuard[type[Struct]]:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _is_quantity(kind: object) -> TypeGuard[type[Quantity]]:
    return isinstance(kind, type) and issubclass(kind, Quantity)


def allowed(kind: object) -> str:
    """What a type allows, in words."""
    bare, meta, optional = _bare(kind)
    return f"{_allowed_bare(bare, meta)}{', or nothing' if optional else ''}"


def _allowed_bare(bare: Any, meta: Meta) -> str:
    if _is_quantity(bare):
        return f"{bare.allowed}, {meta.title}" if meta.title else bare.allowed
    if get_origin(bare) is Literal:
        return ", ".join(_choices(bare))
    if get_origin(bare) is tuple:
        return f"a list, each {allowed(get_args(bare)[0])}"
    if _is_struct(bare):
        return f"a mapping with the keys {', '.join(field.encode_name for field in msgspec.structs.fields(bare))}"
    if get_origin(bare) in (Union, UnionType):
        return " or ".join(allowed(part) for part in get_args(bare) if part is not NoneType)
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    text = meta.description or names.get(bare) or ("a mapping" if get_origin(bare) in (Mapping, dict) else str(bare))
    bounds = (("at least", meta.ge), ("more than", meta.gt), ("at most", meta.le), ("less than", meta.lt))
    return ", ".join([text, *(f"{word} {bound}" for word, bound in bounds if bound is not None)])


def _line(document: Document, mistake: _Mistake) -> str:
    origin = document.origin(mistake.path)
    path = "" if re.match(rf"--set {re.escape(mistake.path)}\s*=", origin) else mistake.path
    where = ": ".join(part for part in (origin, path) if part)
    return f"{where}: found {mistake.found}; allowed: {mistake.allowed}{meant(mistake.meant_by, mistake.names)}"
