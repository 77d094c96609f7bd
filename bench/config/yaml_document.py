"""YAML files: plain values, and the line of each key and value. Every mistake is an error of one line.

ruamel.yaml would not make this module shorter (docs/decisions/0101-yaml-composer-stays.md).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from bench.errors import UsageError

MAX_FILE_BYTES = 10**6
MAX_DEPTH = 20
MAX_SHOWN_CHARACTERS = 80

Values = dict[str, object]


class Document(Struct, frozen=True):
    """The plain values of a file, and the origin of each by its path.

    A path is "grid.message_size[0]"; an origin is "FILE:LINE" or "--set ...".
    """

    file: str
    values: Values
    origins: Mapping[str, str] = {}

    def origin(self, path: str) -> str:
        """Return the origin of a value; of a missing one, the origin of the mapping that lacks it."""
        while path and path not in self.origins:
            path = re.sub(r"\.?[^.\[]*$|\[[^\[]*$", "", path)
        return self.origins.get(path, self.file)


def read_document(path: Path) -> Document:
    """Read a YAML file; its keys and values are not checked yet.

    Raises:
        UsageError: The file cannot be read, is not plain YAML, or has no mapping at the top.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        siblings = [sibling.name for sibling in sorted(path.parent.glob("*.y*ml"))]
        raise UsageError(f"{path}: found no such file; allowed: a YAML file{suggestion(path.name, siblings)}") from None
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror}); give a YAML file that this user may read"
        ) from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: found bytes that are not UTF-8; allowed: a YAML file in UTF-8") from None
    if len(raw) > MAX_FILE_BYTES:
        raise UsageError(f"{path}: found more than 1 MB; allowed: a YAML file of at most 1 MB")
    parser = YamlParser(lambda line: f"{path}:{line}")
    values = parser.parse(text, "")
    if not isinstance(values, dict):
        raise UsageError(f'{path}:1: found {describe(values)}; allowed: a mapping, lines such as "name: quick"')
    return Document(str(path), values, parser.origins)


class _NotPlain(yaml.MarkedYAMLError):
    """A feature of YAML that these files do not use."""


class _Composer(yaml.BaseLoader):
    """A composer for plain YAML: it refuses anchors, aliases, tags and deep nesting before anything is built."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # types-pyyaml leaves it untyped
        for name in ("anchor", "tag"):
            if (written := getattr(event, name, None)) is not None:
                raise _NotPlain(problem=f"the {name} {written!r}", problem_mark=event.start_mark)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _NotPlain(problem=f"more than {MAX_DEPTH} nested levels", problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class YamlParser:
    """A parser of YAML texts that records the origin of each value by its path in `origins`."""

    def __init__(self, origin_of: Callable[[int], str]) -> None:
        self._origin_of = origin_of
        self.origins: dict[str, str] = {}

    def parse(self, text: str, path: str) -> object:
        """Return the plain value of a text that belongs at `path` in the document.

        Raises:
            UsageError: The text is not plain YAML, or has a key twice.
        """
        try:
            node = _Composer(text).get_single_node()
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise self._error(line, f"the character {chr(error.character)!r}") from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = error.problem if isinstance(error, _NotPlain) else f"broken YAML ({error.problem})"
            raise self._error(mark.line + 1 if mark else 1, str(problem)) from None
        return self._value_of(node, path) if node is not None else None

    def _error(self, line: int, problem: str) -> UsageError:
        found = " ".join(problem.split())  # one line
        return UsageError(
            f'{self._origin_of(line)}: found {found}; allowed: plain YAML: "key: value" lines, lists and values'
        )

    def _value_of(self, node: yaml.Node, path: str) -> object:
        line = node.start_mark.line + 1
        self.origins.setdefault(path, self._origin_of(line))
        if isinstance(node, yaml.SequenceNode):
            return [self._value_of(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return dict(self._entries(node, path))
        return _scalar(node.value) if isinstance(node, yaml.ScalarNode) and node.style is None else node.value

    def _entries(self, node: yaml.MappingNode, path: str) -> Iterator[tuple[str, object]]:
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(line, "a key that is not a word")
            inner = join_path(path, key.value)
            if key.value in lines:
                found = f"this key a second time (first in line {lines[key.value]})"
                raise UsageError(f"{self._origin_of(line)}: {inner}: found {found}; allowed: each key once")
            lines[key.value] = line
            self.origins[inner] = self._origin_of(line)
            yield key.value, self._value_of(value, inner)


def _scalar(text: str) -> object:
    """Return the value of a plain scalar by the rules of YAML 1.2: "no" is a text, "010" is ten."""
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[-+]?([0-9]{1,18}\.[0-9]*|\.[0-9]+|[0-9]{1,18}(?=[eE]))([eE][-+]?[0-9]{1,2})?", text):
        return float(text)
    return text


def suggestion(written: str, names: Sequence[str]) -> str:
    """Return the end of an error message that suggests the nearest name; empty if none is near."""
    nearest = nearest_name(written, names)
    return f"; did you mean '{nearest}'?" if nearest is not None else ""


def nearest_name(written: str, names: Sequence[str]) -> str | None:
    """Return the name that is most similar to the written one; None if none is near."""
    alike = [name for name in names if name.casefold() == written.casefold()]
    return next(iter(alike or get_close_matches(written[:MAX_SHOWN_CHARACTERS], names, n=1)), None)


def join_path(path: str, key: str) -> str:
    """Return the path of a key within the mapping at `path`."""
    name = key if re.fullmatch(r"[\w.\-]{1,80}", key) else describe(key)
    return f"{path}.{name}" if path else name


def describe(value: object) -> str:
    """Return a value as error messages name it, on one line of at most MAX_SHOWN_CHARACTERS."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[: MAX_SHOWN_CHARACTERS - 3]}..."
