"""The pages in a real Chromium: nothing logged, nothing asked of the network, keys, links, both widths, both themes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_chromium
from report_chromium import Browser, Tab
from report_models import COMMANDS, long_walk, polite, undelete

from lakeproof.checker.search import check
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit.policy import POLICIES
from lakeproof.models import iceberg, paimon
from lakeproof.models.iceberg.telling import told
from lakeproof.report import explorer, page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(report_chromium.found() is None, reason="no Chromium here (Debian's package is `chromium`)"),
]
WIDTHS = (1440, 390)
PAGES: dict[str, Callable[[], Verdict]] = {
    "undelete": lambda: check(undelete()),
    "lasso": lambda: check(polite()),
    "long": lambda: check(long_walk(60)),
    "many": lambda: check(long_walk(12, 7)),
    "iceberg": lambda: iceberg_undelete(),
    "paimon": lambda: check(paimon.build({"preset": "two-compactors"})),
}


def iceberg_undelete() -> Verdict:
    """The undelete of the Iceberg model, told with the names of files and snapshots."""
    config = iceberg.configured({"preset": "undelete"}, POLICIES["iceberg-spark"])
    verdict, teller = check(iceberg.model_of(config)), iceberg.model_of(config, told=True)
    properties = (p if p.trace is None else p._replace(trace=told(teller, p.trace)) for p in verdict.properties)
    return replace(verdict, properties=tuple(properties))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    running = Browser()
    yield running
    running.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, verdict in PAGES.items():
        page.write_page(folder / f"{name}.html", verdict())
    return folder


def opened(browser: Browser, pages: Path, name: str, place: str = "", **options: Any) -> Tab:
    """A page in a tab of its own."""
    return browser.tab(f"file://{pages / name}.html{place}", **options)


def where(tab: Tab) -> str:
    """The step that the page shows, by its own words."""
    return str(tab.run("document.getElementById('where').textContent"))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_every_step_draws_without_a_complaint_or_a_request(
    browser: Browser, pages: Path, name: str, width: int
) -> None:
    tab = opened(browser, pages, name, width=width, dark=width == 390)
    steps = tab.run("document.querySelectorAll('.step').length") - 1
    assert steps == {"undelete": 8, "lasso": 5, "long": 60, "many": 12, "iceberg": 14, "paimon": 20}[name]
    tab.press("Home")
    for number in range(1, steps + 1):
        tab.press("ArrowRight")
        assert where(tab) == f"step {number} of {steps}"
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    assert tab.complaints() == []
    assert tab.requests() == [f"file://{pages / name}.html"]
    tab.close()


def test_the_page_opens_at_the_last_step_and_shows_what_is_wrong(browser: Browser, pages: Path) -> None:
    tab = opened(browser, pages, "undelete")
    assert where(tab) == "step 8 of 8"
    assert tab.run("document.querySelector('h1').textContent").startswith("Snapshot 3 shows a row")
    assert tab.run("document.querySelector('.reader.wrong h3').textContent").startswith("snapshot 3")
    assert tab.run("[...document.querySelectorAll('.reader.wrong tr.extra td')].map((cell) => cell.textContent)") == [
        "jack",
        "blue",
        "A",
    ]
    assert tab.run("document.getElementById('checks-title').textContent") == "What was checked, and passed wrongly"
    marked = tab.run("[...document.querySelectorAll('.box.new b')].map((box) => box.textContent)")
    assert marked == [
        "metadata-3",
        "snapshot 3",
        "manifest-list-3",
        "manifest-3-data",
        "manifest-3-deletes",
        "delete-2",
    ]
    assert tab.run("document.querySelectorAll('.levels path').length") > 15
    tab.close()


def test_the_undelete_of_the_iceberg_model_is_told_to_its_end(browser: Browser, pages: Path) -> None:
    tab = opened(browser, pages, "iceberg")
    title = "Snapshot 3 shows a row that should not be there: jack blue A"
    assert tab.run("document.querySelector('h1').textContent") == title
    boxes = "[...document.querySelectorAll('.level')].map((level) => level.querySelectorAll('.box').length)"
    assert tab.run(boxes) == [1, 1, 3, 3, 5, 4]
    asked = tab.run("[...document.querySelectorAll('.checks code')].map((code) => code.textContent)")
    assert asked[:2] == ["history_known", "data_files_exist_skipping_deletes"]
    tab.close()


def test_the_dangling_vector_of_the_paimon_model_is_drawn_as_a_tree(browser: Browser, pages: Path) -> None:
    tab = opened(browser, pages, "paimon")
    assert tab.run("document.querySelector('h1').textContent") == "no_dangling_deletion_vectors is violated"
    assert tab.run("document.getElementById('table').hidden")
    assert tab.run("document.querySelectorAll('.holder').length") == 3
    assert tab.run("document.querySelectorAll('#shared ins').length") > 0
    tab.close()


def test_keys_walk(browser: Browser, pages: Path) -> None:
    tab = opened(browser, pages, "undelete", "#step-3")
    walked = []
    for key in ("ArrowRight", "j", "ArrowDown", "ArrowLeft", "k", "ArrowUp", "End", "ArrowRight", "Home", "ArrowLeft"):
        tab.press(key)
        walked.append(tab.run("location.hash"))
    expected = [4, 5, 6, 5, 4, 3, 8, 8, 0, 0]
    assert walked == [f"#step-{number}" for number in expected]
    tab.close()


def test_a_link_leads_to_its_step_also_in_an_open_page(browser: Browser, pages: Path) -> None:
    tab = opened(browser, pages, "undelete", "#step-5")
    assert where(tab) == "step 5 of 8"
    assert tab.run("document.querySelector('#current h3').textContent") == "recolour · swap"
    tab.run("location.hash = 'step-2'")
    tab.until("document.getElementById('where').textContent === 'step 2 of 8'")
    tab.run("location.hash = 'step-999'")
    tab.until("document.getElementById('where').textContent === 'step 8 of 8'")
    tab.run("location.hash = 'nonsense'")
    assert where(tab) == "step 8 of 8"
    tab.close()


def test_a_lasso_goes_round(browser: Browser, pages: Path) -> None:
    tab = opened(browser, pages, "lasso")
    assert where(tab) == "step 5 of 5"
    assert tab.run("document.querySelectorAll('li.loop').length") == 4
    tab.press("ArrowRight")
    assert where(tab) == "step 2 of 5"
    tab.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_current_step_of_a_long_trace_is_in_sight_and_the_page_does_not_jump(
    browser: Browser, pages: Path, width: int
) -> None:
    tab = opened(browser, pages, "long", "#step-1", width=width)
    for key, number in (("End", 60), ("Home", 0), ("j", 1)):
        tab.press(key)
        seen = tab.run(
            f"(() => {{ const row = document.getElementById('row-{number}').getBoundingClientRect(),"
            " panel = document.getElementById('lanes').getBoundingClientRect();"
            " return row.top >= panel.top && row.bottom <= panel.bottom + 1 })()"
        )
        assert seen, f"step {number} is out of sight"
        assert tab.run("scrollY") == 0
    tab.close()


def test_many_actors_get_a_rail_each(browser: Browser, pages: Path) -> None:
    tab = opened(browser, pages, "many")
    assert tab.run("document.getElementById('lanes').className") == "by-rail"
    assert tab.run("document.querySelectorAll('#rails i').length") == 8
    places = tab.run("[...document.querySelectorAll('.dot')].map((dot) => dot.getBoundingClientRect().left)")
    assert places[:7] == sorted(set(places))
    assert places[7] == places[0]
    tab.close()


def test_a_screen_reader_is_told_where_it_is(browser: Browser, pages: Path) -> None:
    tab = opened(browser, pages, "undelete", "#step-5")
    said = "Step 5 of 8. recolour: swap.  snapshot 2, UPDATE committed"
    assert tab.run("document.querySelector('[aria-live=polite]').textContent") == said
    assert tab.run("document.querySelectorAll('[aria-current=step]').length") == 1
    tree = tab.call("Accessibility.getFullAXTree")["nodes"]
    roles = {node["role"]["value"] for node in tree if not node.get("ignored")}
    assert {"banner", "main", "navigation", "contentinfo", "region", "status"} <= roles
    buttons = [node["name"]["value"] for node in tree if node.get("role", {}).get("value") == "button"]
    assert all(buttons)
    assert "step 5 recolour swap snapshot 2 UPDATE committed" in [" ".join(name.split()) for name in buttons]
    tab.close()


def test_tab_goes_to_the_skip_link_then_to_the_one_current_row(browser: Browser, pages: Path) -> None:
    tab = opened(browser, pages, "undelete", "#step-5")
    focused = []
    for _ in range(4):
        tab.press("Tab")
        focused.append(tab.run("document.activeElement.id || document.activeElement.className"))
    assert focused == ["skip", "row-5", "first", "previous"]
    tab.run("document.getElementById('row-5').focus()")
    tab.press("ArrowDown")
    assert tab.run("document.activeElement.id") == "row-6"
    tab.close()


def test_a_snapshot_can_be_chosen_in_the_tree(browser: Browser, pages: Path) -> None:
    tab = opened(browser, pages, "undelete")
    tab.run("document.querySelector('[data-box=snapshot-1]').click()")
    assert tab.run("document.querySelector('[aria-pressed=true]').dataset.box") == "snapshot-1"
    shown = "[...document.querySelectorAll('.box:not(.old) b')].map((box) => box.textContent)"
    assert tab.run(shown) == ["catalog", "metadata-3", "snapshot 1", "manifest-list-1", "manifest-1-data", "data-1"]
    tab.run("document.querySelector('.tree-bar button').click()")
    assert tab.run("document.querySelectorAll('.box.old').length") == 2  # the other snapshots stay to be chosen
    tab.close()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("step", [1, 8])
def test_text_can_be_read_on_its_ground(browser: Browser, pages: Path, step: int, dark: bool) -> None:
    tab = opened(browser, pages, "undelete", f"#step-{step}", dark=dark)
    assert tab.run(CONTRAST) == []
    tab.close()


def test_the_printed_page_shows_every_step(browser: Browser, pages: Path, tmp_path: Path) -> None:
    tab = opened(browser, pages, "long")
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.run("getComputedStyle(document.getElementById('walk')).display") == "none"
    panel = "document.getElementById('lanes')"
    assert tab.run(f"{panel}.scrollHeight - {panel}.clientHeight") == 0
    tab.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    tab.close()


def test_several_traces_are_chosen_by_a_button_and_by_a_link(browser: Browser, tmp_path: Path) -> None:
    page.write_page(tmp_path / "witnesses.html", check(undelete(), witnesses=True))
    tab = browser.tab(f"file://{tmp_path}/witnesses.html#trace-2-step-1")
    assert tab.run("document.querySelector('#traces [aria-pressed=true]').textContent") == "some DELETE committed"
    tab.run("document.querySelectorAll('#traces button')[2].click()")
    assert tab.run("location.hash") == "#trace-3-step-8"
    tab.run("document.querySelector('footer a').click()")
    tab.until("document.querySelector('#traces [aria-pressed=true]').textContent === 'consistent_read'")
    assert tab.run("location.hash") == "#step-1"
    assert tab.complaints() == []
    tab.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_explorer_takes_steps_and_takes_them_back(browser: Browser, width: int) -> None:
    model = undelete()
    with explorer.server(model, trace=check(model).trace) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        address = explorer.address_of(server)
        tab = browser.tab(address, width=width)
        count = "document.querySelectorAll('.step').length"
        tab.until(f"{count} === 9")
        assert tab.run("document.querySelector('#choices .remark').textContent") == "Violated here: consistent_read"
        tab.press("Backspace")
        tab.until(f"{count} === 8")
        assert tab.run("location.hash") == "#walk=0.0.0.1.0.0.0"
        tab.press("Home")
        names = tab.run("[...document.querySelectorAll('.choice')].map((choice) => choice.textContent)")
        assert names == [f"1start{COMMANDS['UPDATE']}", f"2start{COMMANDS['DELETE']}"]
        tab.press("2")
        tab.until(f"{count} === 2")
        assert tab.run("document.querySelector('#current h3').textContent") == "privacy · start"
        tab.run("history.back()")
        tab.until(f"{count} === 8")
        assert tab.complaints() == []
        assert all(request.startswith(address) for request in tab.requests())
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")
        tab.close()
        server.shutdown()
        thread.join()


def test_the_explorer_says_when_a_walk_is_not_there(browser: Browser) -> None:
    with explorer.server(undelete()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        tab = browser.tab(f"{explorer.address_of(server)}#walk=9")
        tab.until("document.querySelector('.fault')")
        said = "The explorer has no such walk: step 1 of the walk takes choice 9, but there are 2"
        assert tab.run("document.querySelector('.fault').textContent") == said
        tab.close()
        server.shutdown()
        thread.join()


CONTRAST = """
(() => {
  const linear = (part) => (part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
  const channel = (value) => linear(value / 255);
  const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const over = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const words = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!words || !element.checkVisibility() || element.closest(":disabled, script, style, .unseen, .skip")) continue;
    const grounds = [];
    for (let up = element; up; up = up.parentElement) grounds.unshift(getComputedStyle(up).backgroundColor);
    const ground = over(grounds), ink = over([...grounds, getComputedStyle(element).color]);
    const [high, low] = [light(ground), light(ink)].sort((a, b) => b - a);
    const ratio = (high + .05) / (low + .05);
    if (ratio < 4.5) poor.push([element.className || element.tagName, element.textContent.slice(0, 30), ratio]);
  }
  return poor;
})()
"""
