"""The harness names no plugin: neither in an import, nor as a name, nor in a string."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bench

ROOT = Path(bench.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
PRODUCTS = re.compile(r"kafka|pulsar|spark|flink|harmonicio|bytewax|locust", re.IGNORECASE)
"""Names that mean nothing but the plugin, wherever they stand."""
WORDS = {"tcp", "files", "memory", "stream", "capacity", "inline", "python"}
WORDS |= {"html", "pdf", "png", "csv", "json", "parquet", "omb", "comparison", "validation-plot", "policy-plot", "live"}
WORDS |= {"bisection", "two-counter", "rfc2544", "mlrsearch"}
WORDS |= {"fixed", "threshold", "dhalion", "ds2", "irm"}
"""Names that are words as well: they mean the plugin where a whole string, or a part of one between slashes, is one."""
PACKAGES = {"producers", "consumers", "frameworks", "reports"}
SHOWN = "an example that the user is shown"
IVY = "the distribution whose jars hold Apache Ivy, which resolves the jars of all embedded servers"
DEFAULT = "the default of a file that others write, which the published schema states"
INTERPRETER = "the interpreter's version in the record of a run"
PROGRAM = "the name of the interpreter's program"
ALLOWED = {
    ("cli/calibrate.py", "Example:  bench calibrate kafka tcp --against client-loop --sizes 100B,1MB"): SHOWN,
    (
        "cli/calibrate.py",
        "A source or system, such as kafka or spark/tcp; `message` measures the message codec.",
    ): SHOWN,
    ("cli/report.py", "Example:  bench import kafka-10kB.json pulsar-10kB.json"): SHOWN,
    ("config/scenario.py", 'framework/source, such as "spark/kafka"'): SHOWN,
    ("config/scenario.py", "two-counter"): DEFAULT,
    ("services/maven_jars.py", "pyspark"): IVY,
    (
        "services/maven_jars.py",
        'the embedded services need the Ivy that PySpark ships; run: pip install "stream-bench[spark]"',
    ): IVY,
    ("services/maven_jars.py", "PySpark's jars folder has no Ivy: "): IVY,
    ("system/host_info.py", "python"): INTERPRETER,
    ("services/python_environments.py", "python"): PROGRAM,
    ("telemetry/profilers.py", "python"): PROGRAM,
    ("cli/install.py", "Example:  bench install bytewax"): SHOWN,
}
"""By (module, text): why these, and only these, may stand there."""


def docstrings(tree: ast.AST) -> set[int]:
    """Return the ids of the strings that stand alone: docstrings and notes below fields."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every string constant that is no docstring, those within f-strings included."""
    passed_over = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed_over:
            yield node.lineno, node.value


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of everything that is defined, used or imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield node.value.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.alias):
            yield node.lineno, node.asname or node.name


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of every import, within functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.lineno, node.module


def named_plugins(source: str) -> list[tuple[int, str]]:
    """Return (line, text) of every place where source code names a plugin."""
    tree = ast.parse(source)
    found = [(line, text) for line, text in (*strings(tree), *identifiers(tree)) if PRODUCTS.search(text)]
    found += [(line, text) for line, text in strings(tree) if WORDS & set(text.split("/"))]
    found += [(line, module) for line, module in imported(tree) if module.partition(".")[0] in PACKAGES]
    return sorted(set(found))


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('"""Kafka, spark/tcp."""\n', []),
        ('def f():\n    """Kafka."""\n    x: int = 1\n    """of kafka"""\n', []),
        ("reads = memory = 1  # a word\n", []),
        ('x = "bytes of memory"\n', []),
        ('x = "memory"\n', [(1, "memory")]),
        ('x = "spark/tcp"\n', [(1, "spark/tcp")]),
        ('x = "any/tcp"\n', [(1, "any/tcp")]),
        ('x = y not in ("", "html")\n', [(1, "html")]),
        ('x = "report.html"\n', []),
        ('strategy: str = "two-counter"\n', [(1, "two-counter")]),
        ('x = f"{y} of kafka"\n', [(1, " of kafka")]),
        ("def kafka_copies(): ...\n", [(1, "kafka_copies")]),
        ("site.pulsar\n", [(1, "pulsar")]),
        ("from producers.tcp import source\n", [(1, "producers.tcp")]),
        ("def f():\n    import frameworks.python\n", [(2, "frameworks.python")]),
    ],
)
def test_the_names_of_plugins_are_found(source: str, lines: list[tuple[int, str]]) -> None:
    """Docstrings and comments may name them; imports, names and strings are found."""
    assert named_plugins(source) == lines


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_plugin_is_named(path: Path) -> None:
    """A plugin is found through its entry point, so that a new one needs no edit here."""
    module = path.relative_to(ROOT).as_posix()
    found = named_plugins(path.read_text(encoding="utf-8"))
    assert [f"{path}:{line}: {text!r}" for line, text in found if (module, text) not in ALLOWED] == []


def test_what_is_allowed_is_still_there() -> None:
    """An exception that nothing needs any more is removed."""
    found = {
        (path.relative_to(ROOT).as_posix(), text)
        for path in MODULES
        for _, text in named_plugins(path.read_text(encoding="utf-8"))
    }
    assert set(ALLOWED) - found == set()
