"""Every error of the harness has an exit code and a line in the tree of bench/errors.py."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import errors
from bench.errors import HarnessError

_ENTRY = re.compile(r"^ {4}( *)(\w+Error) .* exit (\d+)$", re.MULTILINE)
TREE = {name: (len(indent), int(code)) for indent, name, code in _ENTRY.findall(errors.__doc__ or "")}
CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HarnessError)]


def subclasses_in_source() -> Iterator[str]:
    """Yield the name of every class in bench that is derived from an error of the tree, in any module."""
    for file in sorted(Path(errors.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base).split(".")[-1] in TREE for base in node.bases):
                yield node.name


def test_the_tree_lists_every_error() -> None:
    """The docstring has every HarnessError of the package by its name, and no other."""
    assert {kind.__name__ for kind in CLASSES} == set(TREE)
    assert set(subclasses_in_source()) == set(TREE) - {"HarnessError"}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_tree_has_the_exit_code_and_the_base_of_an_error(kind: type[HarnessError]) -> None:
    """The exit code in the docstring is that of the class, and the indentation follows the inheritance."""
    depth = len(kind.__mro__) - len(HarnessError.__mro__)
    assert TREE[kind.__name__] == (2 * depth, kind.exit_code)
    assert kind.exit_code in (2, 3, 130)
