"""Targets that draw: texts of a run in the HTML page, and as data of the Typst template."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import typst

from bench.errors import HarnessError
from reports.formats.html_page import encode_for_script, load_templates
from reports.formats.typesetting import copy_template

_NAMES = (
    b"spark/kafka", b"<script>alert(1)</script>", b"\" onmouseover=\"x", b"#eval(\"1\") $x$ `code` @ref",
    b"../../etc/passwd",
    "日本/é".encode(), b"{{ 7 * 7 }}", b"</script><img src=x>",
)  # fmt: skip
SEPARATOR = b"\xff\x00"
"""Between the texts of one input; no text has it."""
_TEMPLATE = load_templates().get_template("report.html")
_ROW = (
    "anchor", "system", "size", "cost", "status", "rate", "interval", "volume", "share", "limit", "p50", "p99",
    "trials",
    "seconds", "errors",
)  # fmt: skip


class _Tags(HTMLParser):
    """The tags of a page with the names of their attributes, and what its data element holds."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.data, self._in_data = "", False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self._in_data = ("id", "data") in attrs

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data, self._in_data = data, False


def _rows(texts: list[str]) -> Iterator[dict[str, str]]:
    """Yield rows of a table with these texts in their cells; the last one is filled up with the first text."""
    for begin in range(0, len(texts), len(_ROW)):
        row = texts[begin : begin + len(_ROW)]
        yield dict(zip(_ROW, row + texts[:1] * (len(_ROW) - len(row)), strict=True))


def _page_of(texts: list[str]) -> _Tags:
    """Return the tags of a page with these texts, none of them empty: all in rows, the first one everywhere else."""
    text = texts[0]
    rows = [SimpleNamespace(**row, keys=[row["system"], None]) for row in _rows(texts)]
    cost = SimpleNamespace(
        summary=text, systems=[text], rows=[SimpleNamespace(size=text, cost=text, plain=text, cores=[text])]
    )
    values = {
        "title": text, "finding": text, "winners": None, "cost": cost, "remarks": [text],
        "map_groups": [], "wide_groups": [], "columns": [(text, "r")],
        "rows": rows, "statuses": [text], "systems": [text], "sizes": [(1, text)], "costs": [(0.0, text)],
        "subject": [(text, text)], "machine": [(text, text)], "repeat": [(text, text)], "missing": [],
        "disagreement": text,
        "limitations": {text: text}, "glossary": {text: text}, "box": (1, 2, 3),
        "data": encode_for_script({"texts": texts}),
        "styles": "",
    }  # fmt: skip
    found = _Tags()
    found.feed(_TEMPLATE.render(**values))
    return found


class PageTarget:
    """The template of the HTML page: no text of a run makes a tag or an attribute, or ends the data."""

    seeds, expected = list(_NAMES), (HarnessError,)

    def __init__(self) -> None:
        self._tags: dict[int, list[tuple[str, tuple[str, ...]]]] = {}

    def read(self, data: bytes) -> None:
        texts = ["." + part.decode(errors="replace") for part in data.split(SEPARATOR)]
        if len(texts) not in self._tags:
            self._tags[len(texts)] = _page_of(["."] * len(texts)).tags
        found = _page_of(texts)
        assert found.tags == self._tags[len(texts)], "a text has become a tag or an attribute"
        assert json.loads(found.data) == {"texts": texts}, "the data is not what was given"

    def repair(self, data: bytes) -> bytes:
        return data


class TypstTarget:
    """The template of the PDF: a text of a run is data, whatever it looks like."""

    seeds, expected = list(_NAMES), (HarnessError,)

    def __init__(self, folder: Path) -> None:
        self._folder, self._source = folder, copy_template("report.typ", folder)

    def read(self, data: bytes) -> None:
        texts = [part[:200].decode(errors="replace") for part in data.split(SEPARATOR)]
        text = texts[0]
        rows = [row | {"keys": []} for row in _rows(texts)]
        content = {
            "title": text, "finding": text, "started": text, "winners": None, "width": 0, "groups": [], "examples": [],
            "cost": {"summary": text, "systems": [text], "rows": [[text] * 4]}, "remarks": [text],
            "rows": rows, "bottlenecks": [(text, text, text)], "missing": [text], "disagreement": text,
            "subject": [(text, text)], "machine": [(text, text)], "repeat": [(text, text)], "limitations": [(text,
            text)],
            "imported": False, "omitted_bottlenecks": 0, "glossary": [(text, text)],
        }  # fmt: skip
        (self._folder / "report.json").write_text(json.dumps(content), encoding="utf-8")
        typst.compile(self._source, root=self._folder, ignore_system_fonts=True, format="pdf")

    def repair(self, data: bytes) -> bytes:
        return data


@contextmanager
def _page(_: Path) -> Iterator[PageTarget]:
    yield PageTarget()


@contextmanager
def _typst(folder: Path) -> Iterator[TypstTarget]:
    yield TypstTarget(folder)


TARGETS: dict[str, Callable[[Path], AbstractContextManager[object]]] = {"page": _page, "typst": _typst}
