"""Figures as SVG elements of a page, with styles as classes: the page stays small and can have a dark theme."""

import re
from collections.abc import Mapping
from html import escape

from reports.figures.figure import Picture
from reports.figures.palette import PAGE

_NUMBER = re.compile(r"-?\d+\.\d{2,}")


class SvgEmbedder:
    """Converter of pictures to SVG elements; collects their styles as classes, prefixed with its `name`."""

    def __init__(self, labels: Mapping[str, str], *, name: str = "") -> None:
        self._labels, self._name = labels, name
        self._classes: dict[str, str] = {}

    def embed(self, picture: Picture) -> str:
        """Return a picture as an SVG element without ids that could clash; links get the labels of their targets."""
        svg = picture.svg()
        body = svg[svg.index("<svg") :]
        body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        body = re.sub(r'<g id="[^"]*"', "<g", body)
        body = re.sub(r' xmlns(:xlink)?="[^"]*"| version="1.1"| transform="rotate\(-0 [^"]*"', "", body)
        body = re.sub(r' (d|x|y)="([^"]*)"', lambda match: f' {match[1]}="{_round(match[2])}"', body)
        body = re.sub(r' style="([^"]*)"', lambda match: self._assign_class(match[1]), body)
        body = re.sub(r"<style[^>]*>.*?</style>|<g/>", "", body, flags=re.DOTALL)
        body = re.sub(r"<g>(<(?:path|text|use)[^>]*>(?:[^<]*</text>)?)</g>", r"\1", re.sub(r">\s+<", "><", body))
        body = body.replace("xlink:href", "href")
        body = re.sub(r'(id="|url\(#|<use href="#)', rf"\g<1>{self._name}", body) if self._name else body
        body = re.sub(r'<a href="(#[^"]*)"[^>]*>', lambda match: self._label_link(match[1]), body)
        return body.replace("<svg ", f'<svg role="group" aria-label="{escape(picture.title)}" ', 1)

    def css(self) -> str:
        """Return the CSS rules of all classes, and their replacements on a dark page."""
        rules = [
            ".map svg *{stroke-linejoin:round;stroke-linecap:butt}",
            *(f".map .{name}{{{style}}}" for style, name in self._classes.items()),
        ]
        dark = [
            f".map .{name}{{{_replace_for_dark(style)}}}"
            for style, name in self._classes.items()
            if _replace_for_dark(style) != style
        ]
        return "\n".join([*rules, "@media screen and (prefers-color-scheme: dark) {", *dark, "}"])

    def _assign_class(self, style: str) -> str:
        declarations = [
            part.strip() for part in style.split(";") if part.strip() and not part.strip().startswith("font-family")
        ]
        name = self._classes.setdefault(";".join(declarations).replace(": ", ":"), f"{self._name}f{len(self._classes)}")
        return f' class="{name}"'

    def _label_link(self, target: str) -> str:
        label = escape(self._labels.get(target, target))
        return f'<a href="{target}" aria-label="{label}"><title>{label}</title>'


def _round(text: str) -> str:
    return _NUMBER.sub(lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), text).replace("\n", "")


def _replace_for_dark(style: str) -> str:
    return re.sub(r"#[0-9a-f]{6}", lambda match: PAGE.get(match[0], match[0]), style)
