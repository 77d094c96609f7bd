"""A YAML file as it was written: plain values, and the line of each; mistakes of form are one line each."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from bench.errors import UsageError

MAX_FILE = 10**6
DEEPEST = 20
MAX_SHOWN = 80

Values = dict[str, object]


class Document(Struct, frozen=True):
    """What a file says: plain values, and by path ("grid.message_size[0]") the origin of each, "FILE:LINE" or "--set ..."."""

    file: str
    values: Values
    origins: Mapping[str, str] = {}

    def origin(self, path: str) -> str:
        """Where a value stands; of one that is left out, where the mapping stands that it is missing from."""
        while path and path not in self.origins:
            path = re.sub(r"\.?[^.\[]*$|\[[^\[]*$", "", path)
        return self.origins.get(path, self.file)


def read_document(path: Path) -> Document:
    """What a YAML file says, its keys and values not checked yet; UsageError where it cannot be read at all."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        siblings = [sibling.name for sibling in sorted(path.parent.glob("*.y*ml"))]
        raise UsageError(f"{path}: found no such file; allowed: a YAML file{meant(path.name, siblings)}") from None
    except OSError as error:
        raise UsageError(f"{path}: found that it cannot be read ({error.strerror}); allowed: a YAML file") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: found bytes that are not UTF-8; allowed: a YAML file in UTF-8") from None
    if len(raw) > MAX_FILE:
        raise UsageError(f"{path}: found more than 1 MB; allowed: a YAML file of at most 1 MB")
    found = Found(lambda line: f"{path}:{line}")
    values = found.value(text, "")
    if not isinstance(values, dict):
        raise UsageError(f'{path}:1: found {shown(values)}; allowed: a mapping, lines such as "name: quick"')
    return Document(str(path), values, found.origins)


class _NotPlain(yaml.MarkedYAMLError):
    """YAML of a kind that these files do without."""


class _Composer(yaml.BaseLoader):
    """Nodes of plain YAML: no alias, no tag, no deep nest."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # types-pyyaml leaves it untyped
        for name in ("anchor", "tag"):
            if (written := getattr(event, name, None)) is not None:
                raise _NotPlain(problem=f"the {name} {written!r}", problem_mark=event.start_mark)
        self.depth += 1
        if self.depth > DEEPEST:
            raise _NotPlain(problem=f"more than {DEEPEST} nested levels", problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class Found:
    """The plain values of a YAML text, and the origin of each by its path."""

    def __init__(self, origin_of: Callable[[int], str]) -> None:
        self._origin_of = origin_of
        self.origins: dict[str, str] = {}

    def value(self, text: str, path: str) -> object:
        try:
            node = _Composer(text).get_single_node()
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise self._refused(line, f"the character {chr(error.character)!r}") from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = error.problem if isinstance(error, _NotPlain) else f"broken YAML ({error.problem})"
            raise self._refused(mark.line + 1 if mark else 1, str(problem)) from None
        return self._of(node, path) if node is not None else None

    def _refused(self, line: int, problem: str) -> UsageError:
        found = " ".join(problem.split())
        return UsageError(
            f'{self._origin_of(line)}: found {found}; allowed: plain YAML: "key: value" lines, lists and values'
        )

    def _of(self, node: yaml.Node, path: str) -> object:
        line = node.start_mark.line + 1
        self.origins.setdefault(path, self._origin_of(line))
        if isinstance(node, yaml.SequenceNode):
            return [self._of(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return dict(self._entries(node, path))
        return _scalar(node.value) if isinstance(node, yaml.ScalarNode) and node.style is None else node.value

    def _entries(self, node: yaml.MappingNode, path: str) -> Iterator[tuple[str, object]]:
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise self._refused(line, "a key that is not a word")
            inner = under(path, key.value)
            if key.value in lines:
                found = f"this key a second time (first in line {lines[key.value]})"
                raise UsageError(f"{self._origin_of(line)}: {inner}: found {found}; allowed: each key once")
            lines[key.value] = line
            self.origins[inner] = self._origin_of(line)
            yield key.value, self._of(value, inner)


def _scalar(text: str) -> object:
    """A plain scalar by the rules of YAML 1.2: "no" is a text, "010" is ten."""
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[-+]?([0-9]{1,18}\.[0-9]*|\.[0-9]+|[0-9]{1,18}(?=[eE]))([eE][-+]?[0-9]{1,2})?", text):
        return float(text)
    return text


def meant(found: str, names: Sequence[str]) -> str:
    """The end of a complaint: which of the names may have been meant; nothing when none is near."""
    nearest = nearest_of(found, names)
    return f"; did you mean '{nearest}'?" if nearest is not None else ""


def nearest_of(found: str, names: Sequence[str]) -> str | None:
    """The name that is most like what was found."""
    alike = [name for name in names if name.casefold() == found.casefold()]
    return next(iter(alike or get_close_matches(found[:MAX_SHOWN], names, n=1)), None)


def under(path: str, key: str) -> str:
    """The path of a key within the mapping at `path`."""
    name = key if re.fullmatch(r"[\w.\-]{1,80}", key) else shown(key)
    return f"{path}.{name}" if path else name


def shown(value: object) -> str:
    """A value as a mistake names it, on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
