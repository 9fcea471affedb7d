"""The pages that people look at first, in a real Chromium, light and dark, wide and narrow: nothing is cut or overlaps.

`LAKEPROOF_PICTURES=FOLDER` keeps a screenshot of each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import report_chromium
from report_boxes import CUT, OVERLAPPING
from report_chromium import Browser

from lakeproof.audit import Audit
from lakeproof.audit.audit import CommitSeen
from lakeproof.audit.findings import Finding
from lakeproof.cli.audit_page import audit_page
from lakeproof.cli.main import main

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(report_chromium.found() is None, reason="no Chromium here (Debian's package is `chromium`)"),
]
ROOT = Path(__file__).resolve().parents[2]
PLACE = "s3://lake/warehouse/shop/orders/data/delivered_at_day=2026-11-01/00000-0-5f2a9c1e-77d0-4d57-a3fb-0001.parquet"
TABLE = """\
create table shop.orders (order_id bigint, customer_email string, amount decimal(12,2), state string,
  delivered_at timestamp, remark string) using iceberg partitioned by (days(delivered_at))
  tblproperties ('write.update.isolation-level'='snapshot', 'write.delete.isolation-level'='snapshot',
  'write.update.mode'='merge-on-read', 'write.delete.mode'='merge-on-read');
insert into shop.orders values (1001, 'jacqueline.featherstonehaugh@example.com', 12.50, 'delivered to the neighbour',
  timestamp '2026-11-01 10:00:00', 'left with the neighbour in the yellow house at the corner');
"""
JOBS = (
    "-- job: correct-amounts\nupdate shop.orders set amount = 11.00 where order_id = 1001;\n",
    "-- job: privacy-delete-requests\ndelete from shop.orders\n"
    "  where customer_email = 'jacqueline.featherstonehaugh@example.com';\n",
    "-- job: nightly-compaction\ncall system.rewrite_data_files(table => 'shop.orders');\n",
    "-- job: state-of-delivery\nupdate shop.orders set state = 'returned by the customer'\n"
    "  where order_id = 1001 and state = 'delivered to the neighbour';\n",
)
FOUND = Audit(
    "shop.orders",
    "lakeproof",
    12,
    (
        Finding("undelete", (7310045521180023, 7310045521180024), "snapshot 7310045521180024 deletes position 0 of a"
                " file that snapshot 7310045521180023 had replaced", (PLACE, PLACE), "target_rows",
                "rows_wrong", "delete the row again, or roll back to snapshot 7310045521180022",
                "the new version is still read"),
        Finding("missing_file", (7310045521180025,), "the manifest names a file that is not there", (PLACE,) * 7,
                severity="may_become_wrong", advice="restore the file from a backup"),
    ),
    3,
    tuple(
        CommitSeen(7310045521180020 + n, 7310045521180019 + n, 1_790_000_000_000 + n, "overwrite", "UPDATE",
                   "lakeproof", ("undelete", "missing_file") if n == 4 else ())
        for n in range(6)
    ),
    ("files that nothing names were not looked for: what is wrong comes first",),
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    running = Browser()
    yield running
    running.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pictures")
    for name, jobs in (("two", JOBS[:2]), ("four", JOBS)):
        (made / f"{name}.sql").write_text(TABLE + "".join(jobs))
        asked = [
            "check",
            str(made / f"{name}.sql"),
            "--policy",
            "iceberg-spark",
            "--report",
            str(made / f"{name}.html"),
        ]
        assert main(asked) == 1
    (made / "audit.html").write_text(audit_page(FOUND))
    script = "import sys; sys.path.insert(0, 'tools'); import website; from pathlib import Path;"
    build = [sys.executable, "-c", f"{script} website.build(Path(sys.argv[1]))", str(made / "site")]
    subprocess.run(build, cwd=ROOT, check=True, timeout=100)
    return made


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", ["two", "four", "audit", "site/index", "site/docs/reference/matrix"])
def test_nothing_is_cut_and_nothing_overlaps(browser: Browser, folder: Path, name: str, width: int, dark: bool) -> None:
    tab = browser.tab(f"file://{folder}/{name}.html", width=width, dark=dark)
    keep = os.environ.get("LAKEPROOF_PICTURES")
    if keep:
        tab.screenshot(Path(keep) / f"{Path(name).name}-{width}-{'dark' if dark else 'light'}.png")
    assert (tab.run(CUT), tab.run(OVERLAPPING)) == ([], [])
    assert tab.complaints() == []
    tab.close()


def test_a_cut_and_an_overlap_are_found(browser: Browser, tmp_path: Path) -> None:
    bad = (
        '<div style="width:50px;overflow:hidden;white-space:nowrap">a line that is far too long</div>'
        '<p style="position:absolute;left:9px;top:99px">one text</p>'
        '<p style="position:absolute;left:19px;top:101px">other</p>'
    )
    (tmp_path / "bad.html").write_text(f"<!doctype html><body>{bad}</body>")
    tab = browser.tab(f"file://{tmp_path}/bad.html")
    assert [said.split(":")[0] for said in tab.run(CUT)] == ["cut"]
    assert tab.run(OVERLAPPING) == ["one text / other"]
    tab.close()


def test_commands_that_overlap_in_time_have_bars_side_by_side(browser: Browser, folder: Path) -> None:
    tab = browser.tab(f"file://{folder}/two.html")
    bars = "[...document.querySelectorAll('.step')].map((step) => step.querySelectorAll('.busy').length)"
    counted = tab.run(bars)
    assert max(counted) == 2
    assert counted[0] == 0
    assert tab.run("document.querySelector('#actors details').open") is False
    tab.close()


def test_a_wrong_cell_of_the_matrix_opens_its_counterexample(browser: Browser, folder: Path) -> None:
    tab = browser.tab(f"file://{folder}/site/docs/reference/matrix.html")
    seen = "[...document.querySelectorAll('.run')].filter((run) => run.checkVisibility()).length"
    assert (
        tab.run("document.querySelectorAll('a.wrong').length")
        == tab.run("document.querySelectorAll('.run').length")
        > 9
    )
    assert tab.run(seen) == 0
    tab.run("document.querySelector('a.wrong').click()")
    tab.until(f"{seen} === 1")
    assert tab.run("document.querySelectorAll('.run:target li').length") > 5
    tab.close()


def test_the_site_is_searched_and_a_phone_sees_the_text_first(browser: Browser, folder: Path) -> None:
    tab = browser.tab(f"file://{folder}/site/index.html", width=390)
    tab.run(
        "(() => { const field = document.getElementById('search'); field.value = 'resurrected compaction';"
        " field.dispatchEvent(new Event('input')) })()"
    )
    assert tab.run("document.querySelectorAll('#found a').length") > 0
    tab.run("document.getElementById('found').replaceChildren()")
    assert tab.run("document.querySelector('h1').getBoundingClientRect().top") < 200
    tab.run("document.querySelector('label[for=menu]').click()")
    assert tab.run("document.querySelector('nav').checkVisibility()")
    assert (
        tab.run("document.querySelectorAll('.copy').length")
        == tab.run("document.querySelectorAll('main pre').length")
        > 3
    )
    tab.close()


def test_the_label_of_a_matrix_cell_does_not_touch_its_marks_on_a_phone(browser: Browser, folder: Path) -> None:
    tab = browser.tab(f"file://{folder}/site/docs/reference/matrix.html", width=390)
    room = (
        "(() => { const draw = document.createElement('canvas').getContext('2d');"
        " return [...document.querySelectorAll('.cell')].map((cell) => {"
        " const style = getComputedStyle(cell, '::before');"
        " draw.font = style.font; const words = draw.measureText('then ' + cell.dataset.second).width;"
        " return parseFloat(style.width) - words; }) })()"
    )
    left = tab.run(room)
    assert len(left) > 500
    assert min(left) > 4
    tab.close()


def test_a_cell_of_the_audits_table_says_its_column_on_a_phone(browser: Browser, folder: Path) -> None:
    tab = browser.tab(f"file://{folder}/audit.html", width=390)
    labels = "[...document.querySelectorAll('td')].map((cell) => getComputedStyle(cell, '::before').content)"
    assert tab.run(labels)[:6] == [f'"{name} "' for name in ("snapshot", "parent", "at", "command", "by", "verdict")]
    tab.close()
