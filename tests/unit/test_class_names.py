"""One class name has one meaning, in the shipped code and in the tests."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("bench", "producers", "consumers", "frameworks", "reports", "infra", "tests")
CLASS = re.compile(r"^ *class ([A-Za-z]\w*)[(:\[]", re.MULTILINE)
"""A class whose name has no underscore before it: one that has stays within its module."""
GIVEN = {"FilterModule"}
"""Names that another project looks for: Ansible's filter plugins."""


def test_no_two_classes_share_a_name():
    """A reader who searches for a class finds one."""
    found = defaultdict(list)
    for file in sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")):
        for name in CLASS.findall(file.read_text()):
            found[name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in found.items() if len(files) > 1 and name not in GIVEN} == {}
