"""One class name has one meaning, in the shipped code and in the tests."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("bench", "producers", "consumers", "frameworks", "reports", "infra", "tests")
GIVEN = {"FilterModule"}
"""Names that another project looks for: Ansible's filter plugins."""


def test_no_two_classes_share_a_name():
    """A reader who searches for a class finds one; names with an underscore stay within their module."""
    found = defaultdict(list)
    for file in sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(), str(file))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    twice = {name: places for name, places in found.items() if len(places) > 1 and name not in GIVEN}
    assert not twice
