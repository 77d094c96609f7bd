"""The figures in docs/reliability.md: written from the logs of real campaigns, between two marks."""

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def write(figures: str) -> None:
    """Replace the figures of the page."""
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")


def replaced(page: str, figures: str) -> str:
    """Return a page with other figures between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{figures}\n{END}{after}"
