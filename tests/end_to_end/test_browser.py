"""The pages in a real Chromium: by mouse, by keyboard and by a screen reader, in a light and in a dark theme."""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("playwright", reason="the extra `test` is not installed")
pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium on this machine; run: apt-get install chromium"
)

from axe_playwright_python.sync_playwright import Axe  # noqa: E402  after the skips
from playwright.sync_api import Browser, Page, expect, sync_playwright  # noqa: E402
from sample_runs import QUICK, make_run  # noqa: E402

from bench.config.site import Site  # noqa: E402
from bench.storage.run_folder import RunFolder  # noqa: E402
from reports.formats import comparison, html_page  # noqa: E402
from reports.live import server  # noqa: E402

expect.set_options(timeout=30_000)
NO_FRAGMENT = re.compile(r"^[^#]*#?$")
"""`wait_for_function` waits within the page, whose security policy allows it only where it need not wait."""
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}}
FRAGMENT = "#cell-spark-tcp-100B-0ms"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Yield one browser for all tests."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a report with every status."""
    (path,) = html_page.write(make_run(tmp_path_factory.mktemp("browser") / "run"))
    return path.as_uri()


@pytest.fixture
def opened(chromium: Browser, report: str) -> Iterator[Page]:
    """Yield the report in a new window; errors and warnings of its console fail the test."""
    window = chromium.new_page(viewport={"width": 1280, "height": 900})
    errors: list[str] = []
    window.on("pageerror", lambda error: errors.append(str(error)))
    window.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    window.goto(report)
    yield window
    window.close()
    assert errors == []


def find_violations(window: Page) -> list[str]:
    """Return the violations that axe-core reports, a line each."""
    reported = Axe().run(window, options=RULES).response["violations"]
    return [f"{one['id']}: {one['help']}: {node['html'][:160]}" for one in reported for node in one["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", ["", FRAGMENT], ids=["page", "cell"])
def test_axe_finds_nothing(opened: Page, report: str, scheme: Any, fragment: str) -> None:
    """The page and an open cell have no violation, light or dark."""
    opened.emulate_media(color_scheme=scheme)
    if fragment:
        opened.goto(report + fragment)  # in the same document: it is not loaded again
    expect(opened.locator("dialog[open]")).to_have_count(1 if fragment else 0)
    assert find_violations(opened) == []


def test_a_click_on_a_map_opens_its_cell(opened: Page) -> None:
    """The cell has its trials, timelines, posterior, latencies, and the command that measures it again."""
    opened.locator(f".map-group:visible a[href='{FRAGMENT}']").first.click()
    cell = opened.locator("dialog[open]")
    assert cell.locator("h2").inner_text() == "spark/tcp, 100 B, 0 ms: 59.9 k/s"
    assert cell.locator("table").first.locator("tbody tr").count() == 6
    assert cell.locator("figure.trial:not(.posterior)").count() == 6
    assert cell.locator("figure.posterior").count() == 1
    assert "--set systems=spark/tcp --set grid.message_size=100B" in cell.locator("code").inner_text()


def test_a_cell_is_opened_and_closed_by_keyboard(opened: Page) -> None:
    """Enter opens it, Escape closes it, and the focus is where it was."""
    link = opened.locator("#table tbody a").first
    link.focus()
    opened.keyboard.press("Enter")
    assert opened.locator("dialog[open]").count() == 1
    assert opened.evaluate("document.activeElement.id") == "cell-title"
    opened.keyboard.press("Escape")
    assert opened.locator("dialog[open]").count() == 0
    assert opened.evaluate("document.activeElement.getAttribute('href')") == FRAGMENT
    expect(opened).to_have_url(NO_FRAGMENT)  # set by the close event, which follows the closing


def test_every_control_is_reached_by_tab(opened: Page) -> None:
    """Links, filters and buttons all get the focus."""
    reached = set()
    for _ in range(40):
        opened.keyboard.press("Tab")
        reached.add(
            opened.evaluate(
                "document.activeElement.getAttribute('name') || document.activeElement.tagName.toLowerCase()"
            )
        )
    assert {"a", "system", "select", "button"} <= reached


def test_an_address_with_a_cell_opens_it(opened: Page, report: str) -> None:
    """The address can be shared, and it survives a reload."""
    opened.goto(report + FRAGMENT)
    opened.reload()
    assert opened.locator("dialog[open] h2").inner_text().startswith("spark/tcp, 100 B")


def test_the_next_cell_is_one_step_away(opened: Page) -> None:
    """The buttons step back and forth in the order of the table."""
    opened.locator("#table tbody a").first.click()
    opened.get_by_role("button", name="next").click()
    assert opened.locator("dialog h2").inner_text().startswith("spark/tcp, 10 kB, 0 ms")
    opened.get_by_role("button", name="previous").click()
    assert opened.locator("dialog h2").inner_text().startswith("spark/tcp, 100 B, 0 ms")


def test_the_table_sorts_by_numbers_not_by_text(opened: Page) -> None:
    """The first click sorts ascending, the second descending; cells without a value come last both times."""
    button = opened.get_by_role("button", name="Throughput")
    button.click()
    assert opened.locator("#table tbody tr .rate").first.inner_text() == "23.2 /s"
    button.click()
    assert opened.locator("#table tbody tr .rate").first.inner_text() == "≥ 184 k/s"
    assert opened.locator("th[aria-sort=descending]").inner_text() == "Throughput"
    assert opened.locator("#table tbody tr .rate").last.inner_text() == ""


def test_filters_leave_only_the_chosen_cells(opened: Page) -> None:
    """They apply to the table and to the maps; one button shows everything again."""
    opened.get_by_role("checkbox", name="spark/tcp").uncheck()
    opened.get_by_role("combobox", name="Sizes from").select_option(label="10 kB")
    assert opened.locator("#table tbody tr:visible").count() == 12
    assert opened.locator(".map-group:visible figure:visible").count() == 3
    assert opened.locator("output").inner_text() == "12 of 24 cells"
    opened.get_by_role("button", name="Show all").click()
    expect(opened.locator("#table tbody tr:not([hidden])")).to_have_count(24)


def test_one_kind_of_map_is_shown_at_a_time(opened: Page) -> None:
    """The chosen kind is visible, the others are hidden."""
    opened.get_by_role("radio", name="Bottlenecks").check()
    assert opened.locator(".map-group:visible").get_attribute("data-kind") == "limits"
    assert "generator" in opened.locator(".map-group:visible").inner_text()


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_the_page_never_scrolls_sideways(opened: Page, width: int) -> None:
    """Tables and figures wider than the window have their own scroll bar."""
    opened.set_viewport_size({"width": width, "height": 900})
    assert opened.evaluate("document.documentElement.scrollWidth") <= width


def test_no_text_of_a_figure_is_cut_off(opened: Page) -> None:
    """Each lies inside its figure."""
    outside = opened.evaluate("""() => [...document.querySelectorAll(".map svg")].flatMap((svg) => {
        const box = svg.getBoundingClientRect();
        return [...svg.querySelectorAll("text")].filter((text) => {
            const at = text.getBoundingClientRect();
            const beside = at.left < box.left - 2 || at.right > box.right + 2;
            return at.width && (beside || at.top < box.top - 2 || at.bottom > box.bottom + 2);
        }).map((text) => `${svg.getAttribute("aria-label")}: ${text.textContent}`);
    })""")
    assert outside == []


def test_the_text_of_a_map_fits_its_cell(opened: Page) -> None:
    """No text is wider than its tile."""
    wide = opened.evaluate("""() => [...document.querySelectorAll(".map-group:not([hidden]) svg")].flatMap((svg) => {
        const cells = [...svg.querySelectorAll("a")].map((link) => link.getBoundingClientRect());
        return [...svg.querySelectorAll("text")].filter((text) => {
            const at = text.getBoundingClientRect();
            const [x, y] = [(at.left + at.right) / 2, (at.top + at.bottom) / 2];
            const cell = cells.find((box) => box.left < x && x < box.right && box.top < y && y < box.bottom);
            return cell && at.width > cell.width + 1;
        }).map((text) => text.textContent);
    })""")
    assert wide == []


def test_a_dark_page_is_dark_and_its_figures_too(opened: Page) -> None:
    """The title of a figure is as light as that of the page; text on a coloured tile keeps its colour."""
    colour = "(at) => getComputedStyle(document.querySelector(at)).color"
    fill = """(words) => {
        const texts = [...document.querySelectorAll(".map text")];
        return getComputedStyle(texts.find((text) => text.textContent === words)).fill;
    }"""
    claim = opened.evaluate(fill, "44 /s")
    opened.emulate_media(color_scheme="dark")
    assert (
        opened.evaluate(fill, "spark/tcp: maximum throughput")
        == opened.evaluate(colour, "body")
        == "rgb(232, 237, 242)"
    )
    assert opened.evaluate(fill, "44 /s") == claim


def test_the_page_requests_nothing_but_itself(chromium: Browser, report: str) -> None:
    """It is one file and works offline."""
    window = chromium.new_page()
    requested: list[str] = []
    window.on("request", lambda request: requested.append(request.url))
    window.goto(report + FRAGMENT)
    window.close()
    assert [url for url in requested if not url.startswith("data:")] == [report + FRAGMENT] or requested == [report]


def test_without_javascript_maps_and_table_are_there(chromium: Browser, report: str) -> None:
    """All kinds of maps are visible, one below the other."""
    context = chromium.new_context(java_script_enabled=False)
    window = context.new_page()
    window.goto(report)
    assert window.locator(".map-group:visible").count() == 5
    assert window.locator("#table tbody tr:visible").count() == 24
    assert window.locator("noscript").count() == 1
    context.close()


def test_axe_finds_nothing_in_a_comparison(chromium: Browser, tmp_path: Path) -> None:
    """The page of two runs has no violation."""
    runs = [make_run(tmp_path / name) for name in ("one", "two")]
    window = chromium.new_page()
    window.goto(comparison.write(runs, tmp_path).as_uri())
    assert find_violations(window) == []
    window.close()


def test_axe_finds_nothing_in_the_live_page(chromium: Browser, tmp_path: Path) -> None:
    """The live page of a run that a harness has open has no violation."""
    run, printed = make_run(tmp_path / "run"), list[str]()
    with closing(RunFolder(run)) as store:
        store.open(QUICK, Site(), {})
        serving = Thread(
            target=server.serve, args=(run,), kwargs={"host": "127.0.0.1", "port": 0, "say": printed.append}
        )
        serving.start()
        end = time.monotonic() + 30
        while not printed and time.monotonic() < end:
            time.sleep(0.02)
        window = chromium.new_page()
        window.goto(re.findall(r"http://[\w.:/]+", printed[0])[0])
        window.get_by_text("spark/kafka").first.wait_for()
        found = find_violations(window)
        window.close()
    serving.join(timeout=60)
    assert found == []
    assert not serving.is_alive()
