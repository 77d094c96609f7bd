"""Figures as elements of a page: the same drawing with its styles as classes, so that a page is small and can be dark."""

import re
from collections.abc import Mapping
from html import escape

from reports.figures.figure import Picture
from reports.figures.palette import PAGE

_NUMBER = re.compile(r"-?\d+\.\d{2,}")


class Inliner:
    """Turns pictures into elements, and knows the styles of all of them; its `name` keeps two of its kind in one page apart."""

    def __init__(self, labels: Mapping[str, str], *, name: str = "") -> None:
        self._labels, self._name = labels, name
        self._classes: dict[str, str] = {}

    def element(self, picture: Picture) -> str:
        """The SVG as an element, without ids that could clash; links get the labels of their targets."""
        svg = picture.svg()
        body = svg[svg.index("<svg") :]
        body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        body = re.sub(r'<g id="[^"]*"', "<g", body)
        body = re.sub(r' xmlns(:xlink)?="[^"]*"| version="1.1"| transform="rotate\(-0 [^"]*"', "", body)
        body = re.sub(r' (d|x|y)="([^"]*)"', lambda found: f' {found[1]}="{_rounded(found[2])}"', body)
        body = re.sub(r' style="([^"]*)"', lambda found: self._class_of(found[1]), body)
        body = re.sub(r"<style[^>]*>.*?</style>|<g/>", "", body, flags=re.DOTALL)
        body = re.sub(r"<g>(<(?:path|text|use)[^>]*>(?:[^<]*</text>)?)</g>", r"\1", re.sub(r">\s+<", "><", body))
        body = body.replace("xlink:href", "href")
        body = re.sub(r'(id="|url\(#|<use href="#)', rf"\g<1>{self._name}", body) if self._name else body
        body = re.sub(r'<a href="(#[^"]*)"[^>]*>', lambda found: self._labelled(found[1]), body)
        return body.replace("<svg ", f'<svg role="group" aria-label="{escape(picture.title)}" ', 1)

    def css(self) -> str:
        """The rules of the classes, and those that a dark page has instead."""
        rules = [
            ".map svg *{stroke-linejoin:round;stroke-linecap:butt}",
            *(f".map .{name}{{{style}}}" for style, name in self._classes.items()),
        ]
        dark = [f".map .{name}{{{_dark(style)}}}" for style, name in self._classes.items() if _dark(style) != style]
        return "\n".join([*rules, "@media screen and (prefers-color-scheme: dark) {", *dark, "}"])

    def _class_of(self, style: str) -> str:
        cached_resource = [
            part.strip() for part in style.split(";") if part.strip() and not part.strip().startswith("font-family")
        ]
        name = self._classes.setdefault(
            ";".join(cached_resource).replace(": ", ":"), f"{self._name}f{len(self._classes)}"
        )
        return f' class="{name}"'

    def _labelled(self, target: str) -> str:
        label = escape(self._labels.get(target, target))
        return f'<a href="{target}" aria-label="{label}"><title>{label}</title>'


def _rounded(text: str) -> str:
    return _NUMBER.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), text).replace("\n", "")


def _dark(style: str) -> str:
    return re.sub(r"#[0-9a-f]{6}", lambda found: PAGE.get(found[0], found[0]), style)
