"""The page as a file: self-contained, safe against its own data, the same for the same verdict."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from report_golden import same_as_golden, settled
from report_models import polite, undelete

from lakeproof import __version__
from lakeproof.checker.search import check
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.report import page
from lakeproof.report.view import view_of


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return settled(check(undelete()))


def test_the_page_of_the_undelete_is_the_golden_one_around_its_assets(verdict: Verdict) -> None:
    text = page.html(view_of(verdict))
    for name in ("page.css", "page.js"):
        assert text.count(page.asset(name)) == 1
        text = text.replace(page.asset(name), f"[{name}]\n")
    same_as_golden("undelete.html", text.replace(f"Lakeproof {__version__}.", "Lakeproof [version]."))


def test_write_gives_the_path_and_takes_a_verdict_a_trace_or_a_view(tmp_path: Path, verdict: Verdict) -> None:
    path = page.write_page(tmp_path / "verdict.html", verdict)
    assert path == tmp_path / "verdict.html"
    assert path.read_text() == page.html(view_of(verdict))
    assert page.write_page(str(tmp_path / "view.html"), view_of(verdict)).read_text() == path.read_text()
    assert verdict.trace is not None
    alone = page.write_page(tmp_path / "trace.html", verdict.trace).read_text()
    assert '<h1 class="bad">Snapshot 3 shows a row that should not be there: jack blue A</h1>' in alone


def test_the_page_names_no_address_but_the_namespace_of_its_drawings(verdict: Verdict) -> None:
    addresses = set(re.findall(r"(?:https?:)?//[\w.]+[^\s\"'`)]*", page.html(view_of(verdict))))
    assert {address for address in addresses if "//" in address and not address.startswith("// ")} == {
        "http://www.w3.org/2000/svg"
    }
    assert "connect-src 'none'" in page.html(view_of(verdict))


def test_the_data_of_the_page_is_the_view(verdict: Verdict) -> None:
    text = page.html(view_of(verdict))
    found = re.search(r'<script type="application/json" id="view">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == {"view": view_of(verdict)}


def test_text_from_a_model_cannot_leave_its_place(verdict: Verdict) -> None:
    evil = "</script><script>alert(1)</script><!-- {{style}} \u2028"
    assert verdict.trace is not None
    step = verdict.trace.steps[0]._replace(label=evil)
    trace = replace(verdict.trace, model=evil, steps=(step, *verdict.trace.steps[1:]))
    text = page.html(view_of(trace))
    assert "<script>alert" not in text
    assert text.count("<script") == page.html(view_of(verdict.trace)).count("<script")
    assert text.count(page.asset("page.css")) == 1


def test_script_safe_json_is_still_the_same_json() -> None:
    value = {"a": "<b> & \u2028 é"}
    text = page.script_safe(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


def test_without_scripts_the_steps_can_still_be_read() -> None:
    text = page.html(view_of(check(polite())))
    found = re.search(r"<noscript>.*?<pre>(.*?)</pre></noscript>", text, re.DOTALL)
    assert found is not None
    assert "   2 bob  want\n       bob: 1, idle → 1, wants\n       shared: 1\n" in found[1]
    assert found[1].endswith("     back to step 2")
