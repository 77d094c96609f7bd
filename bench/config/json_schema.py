"""JSON Schemas made from types (see bench.plugins.schemas for the published files)."""

import json
import re
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from bench.config.scenario import Scenario
from bench.model.message_sizes import MessageSize
from bench.units import Quantity, Rate, Seconds, Share, Size, rate_text, seconds_text, size_text

Schema = dict[str, Any]


def text_of(kind: type[Struct]) -> str:
    """Return the text of the published file for a type."""
    return json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"


def schema_of(kind: type[Struct]) -> Schema:
    """Return the JSON Schema (2020-12) of a type: keys, types, defaults and units.

    Limits of quantities are in the descriptions only.
    """
    schema = msgspec.json.schema(_without_defaults(kind), schema_hook=_quantity_schema)
    for part in _structs(kind):
        for field in msgspec.structs.fields(part):
            if field.default is not msgspec.NODEFAULT:
                default = msgspec.to_builtins(field.default, enc_hook=_format_quantity)
                schema["$defs"][part.__name__]["properties"][field.encode_name]["default"] = default
    if kind is Scenario:
        sizes = schema["$defs"]["Grid"]["properties"]
        sizes["message_size"] = {"anyOf": [sizes["message_size"], _mix_schema()]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _structs(kind: type[Struct]) -> list[type[Struct]]:
    """Return a type and the types of its fields, recursively."""
    inner = [
        part
        for field in msgspec.structs.fields(kind)
        for part in (field.type, *get_args(field.type))
        if isinstance(part, type(Struct))
    ]
    return [kind, *(part for whole in inner for part in _structs(whole))]


def _without_defaults(kind: Any) -> Any:
    """Return the type with unknown defaults: msgspec cannot write a default that is a quantity into a schema."""
    if get_origin(kind) in (Union, UnionType):
        return Union[tuple(_without_defaults(part) for part in get_args(kind))]  # noqa: UP007  the parts are a list
    if not isinstance(kind, type(Struct)):
        return kind
    optional, fields = msgspec.field(default_factory=object), []
    for field in msgspec.structs.fields(kind):
        default = msgspec.field() if field.required else optional
        fields.append((field.encode_name, _without_defaults(field.type), default))
    return msgspec.defstruct(kind.__name__, fields, namespace={"__doc__": kind.__doc__}, forbid_unknown_fields=True)


def _mix_schema() -> Schema:
    """Return the schema of a distribution of message sizes."""
    size = _quantity_schema(Size)
    quantiles = {
        "type": "object",
        "properties": dict.fromkeys(("median", "p99"), size),
        "additionalProperties": False,
    }
    shares = {
        "type": "object",
        "propertyNames": size,
        "additionalProperties": _quantity_schema(Share),
        "minProperties": 1,
    }
    return {
        "description": "a distribution of message sizes: exactly one of lognormal and choice; "
        "shares of a choice add up to 1",
        "type": "object",
        "properties": {"lognormal": quantiles | {"required": ["median", "p99"]}, "choice": shares},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }


def _quantity_schema(kind: type[Quantity]) -> Schema:
    units = "|".join(re.escape(unit) for unit in kind.scale)
    written = {"type": "string", "pattern": rf"^\s*[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*({units})\s*$"}
    described = {"description": kind.allowed}
    if kind is Share:
        return described | {"anyOf": [written, {"type": "number", "minimum": 0, "maximum": 1}]}
    if kind is MessageSize:
        return described | {"anyOf": [written, _mix_schema()]}
    if kind is Seconds:
        return described | {"anyOf": [written, {"const": 0}]}
    return described | written


def _format_quantity(quantity: object) -> str:
    """Return a quantity as a user would write it in the file."""
    if isinstance(quantity, Share):
        return f"{100 * quantity:g} %"
    texts = ((Size, size_text), (Seconds, seconds_text), (Rate, rate_text))
    return next(text(quantity) for kind, text in texts if isinstance(quantity, kind))
