"""Types of the fields of scenario and site files: their parts, and a description of the values that they allow."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from bench.units import Quantity


def describe_allowed(kind: object) -> str:
    """Return a description of the values that a type allows."""
    bare, meta, optional = unwrap(kind)
    return f"{_describe_bare(bare, meta)}{', or nothing' if optional else ''}"


def _describe_bare(bare: Any, meta: Meta) -> str:
    if is_quantity(bare):
        return f"{bare.allowed}, {meta.title}" if meta.title else bare.allowed
    if get_origin(bare) is Literal:
        return ", ".join(choices(bare))
    if get_origin(bare) is tuple:
        return f"a list, each {describe_allowed(get_args(bare)[0])}"
    if is_struct(bare):
        return f"a mapping with the keys {', '.join(field.encode_name for field in msgspec.structs.fields(bare))}"
    if get_origin(bare) in (Union, UnionType):
        return " or ".join(describe_allowed(part) for part in get_args(bare) if part is not NoneType)
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    text = meta.description or names.get(bare) or ("a mapping" if get_origin(bare) in (Mapping, dict) else str(bare))
    bounds = (("at least", meta.ge), ("more than", meta.gt), ("at most", meta.le), ("less than", meta.lt))
    return ", ".join([text, *(f"{word} {bound}" for word, bound in bounds if bound is not None)])


def choices(bare: object) -> tuple[str, ...]:
    """Return the values of a Literal as texts; empty for any other type."""
    return tuple(str(name) for name in get_args(bare)) if get_origin(bare) is Literal else ()


def unwrap(kind: object) -> tuple[Any, Meta, bool]:
    """Return a type without annotation and None, its annotation, and True if None is allowed."""
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


def is_struct(kind: object) -> TypeGuard[type[Struct]]:
    """Return True for a type of msgspec's structs: a mapping with fixed keys."""
    return isinstance(kind, type) and issubclass(kind, Struct)


def is_quantity(kind: object) -> TypeGuard[type[Quantity]]:
    """Return True for a type of quantities with units."""
    return isinstance(kind, type) and issubclass(kind, Quantity)
