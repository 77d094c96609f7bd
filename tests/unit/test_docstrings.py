"""Docstrings of the code are sentences of plain English: they begin with a verb or a noun, not with a riddle."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("bench", "producers", "consumers", "frameworks", "reports", "infra", "docs")
REFUSED = ("What", "Whether", "How", "Of", "Where", "Who", "Whom", "Whose", "Which", "That", "Whatever", "Whoever")
"""First words with which a docstring needs a second reading."""


@pytest.mark.parametrize("package", PACKAGES)
def test_no_docstring_opens_with_a_question_word(package: str) -> None:
    """Of modules, classes and functions; the line of each that does is listed."""
    found = []
    for file in sorted((ROOT / package).rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = (ast.get_docstring(node) or "").partition(" ")[0]
                if first in REFUSED:
                    found.append(f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)} {first} ...")
    assert found == []
