"""docs/reference.md, made from the types: every key of scenario and site files, every setting of the installed plugins.

`python -m docs.reference_page` writes it again; a test says when it is out of date.
"""

import ast
import inspect
import sys
from collections.abc import Collection
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

import msgspec
from msgspec import Struct

from bench.config.field_types import describe_allowed
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.plugins import registry
from bench.units import exact_text, rate_text, seconds_text, size_text

FILE = Path(__file__).with_name("reference.md")
HEAD = """# Reference: scenarios, sites, settings

Made from the types by `python -m docs.reference_page`; this page lists what `bench check` accepts. Quantities are
written with their unit: sizes `100 B`, `10 kB` (1 kB = 1000 B), `1 MiB`; durations `20 ms`, `1 s`, `10 min`; rates
`5 /s`, `1.5 k/s`; shares `5 %`.
"""


def text() -> str:
    """Return the whole page."""
    parts = [HEAD, "\n## Scenario file\n", *_section(Scenario)]
    parts += ["\n## Site file\n", *_section(Site, without={"sections"})]
    parts.append("\n## Sections of the plugins in a site file\n\nBeside the keys above, by the key of the section.\n")
    for key, kind in sorted(registry.site_sections().items()):
        parts += [f"\n### {key}\n", *_section(kind, f"{key}.")]
    parts.append("\n## Settings of the plugins\n\nUnder `settings:` in a scenario, by the name of the plugin.\n")
    for group in ("sources", "frameworks"):
        for name in registry.names(group):
            settings = registry.settings_type(name)
            if settings is not None:
                parts += [f"\n### settings.{name} ({registry.KINDS[group]})\n", *_section(settings)]
    parts.append("\n## Settings of the scaling policies\n")
    parts.append("\nOf scenarios of kind elasticity, and of `bench advise --load`: `--set settings.ds2.KEY=VALUE`.\n")
    for name in registry.names("policies"):
        settings = registry.policy_plugin(name).settings
        parts += [f"\n### settings.{name} ({registry.KINDS['policies']})\n", *_section(settings)]
    return "".join(parts)


def _section(kind: type[Any], path: str = "", without: Collection[str] = ()) -> list[str]:
    """Return a type's sentence, a table of its fields but those `without`, and the same for the mappings in it."""
    notes = _docstrings(kind)
    fields = [field for field in msgspec.structs.fields(kind) if field.name not in without]
    lines = [f"\n{inspect.getdoc(kind)}\n", "\n| key | allowed | when left out |\n| --- | --- | --- |\n"]
    if not fields:
        return lines[:1]
    inner = []
    for field in fields:
        part = _struct_of(field.type)
        note = notes.get(field.name, "")
        within = f"a mapping, see below (`{path}{field.encode_name}`)"
        shown = within if part is not None else describe_allowed(field.type).replace("|", "\\|")
        lines.append(
            f"| `{path}{field.encode_name}` | {shown}{f'. {_sentence(note)}' if note else ''} | {_default(field)} |\n"
        )
        if part is not None:
            inner += [f"\n**`{path}{field.encode_name}`**\n", *_section(part, f"{path}{field.encode_name}.")]
    return [*lines, *inner]


def _struct_of(kind: Any) -> type[Struct] | None:
    """Return the mapping that a field holds; None where it holds none."""
    return next((part for part in (kind, *get_args(kind)) if isinstance(part, type) and issubclass(part, Struct)), None)


def _sentence(note: str) -> str:
    flat = " ".join(note.split())
    return flat[:1].upper() + flat[1:].rstrip(".")


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "must be given"
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    if default is None:
        return "nothing"
    if isinstance(default, Struct):
        return "as below"
    return "empty" if default in ("", {}, ()) else f"`{_written(default)}`"


def _written(value: object) -> str:
    """Return a value as the user would write it in the file."""
    if isinstance(value, tuple):
        return f"[{', '.join(_written(one) for one in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    try:
        exact = exact_text(value)
    except TypeError:
        return str(value)
    if not isinstance(exact, str):
        return f"{100 * float(str(exact)):g} %"
    unit = exact.rsplit(" ", 1)[-1]
    known = {"B": size_text, "s": seconds_text, "/s": rate_text}.get(unit)
    return known(float(value)) if known is not None and isinstance(value, int | float) else exact


def _docstrings(kind: type[Any]) -> dict[str, str]:
    """Return the text below each field in the source of a type, by field."""
    body = ast.parse(dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(below):
            found[field.target.id] = str(below.value.value)  # type: ignore[attr-defined]
    return found


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("usage: python -m docs.reference_page")
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text(), encoding="utf-8")
