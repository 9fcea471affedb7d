"""The terminal and the notebook: one golden rendering each, and quiet where nobody looks."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Literal

import pytest
from report_golden import same_as_golden, settled
from report_models import long_walk, polite, undelete
from rich.console import Console

from lakeproof.checker.limits import Progress
from lakeproof.checker.search import check
from lakeproof.checker.verdicts.trace import Trace
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.report import notebook, terminal

STANDING = Progress(1234, 5678, 9, 400, 20_000.0, 88.0, 2.0, None, "no estimate: the frontier still grows")


def printed(verdict: Verdict, *, width: int = 100, colours: bool = False, verbose: bool = False) -> str:
    """What a verdict looks like in a terminal this wide."""
    out = io.StringIO()
    system: Literal["standard"] | None = "standard" if colours else None
    console = Console(file=out, width=width, force_terminal=colours, color_system=system)
    terminal.print_verdict(console, verdict, verbose=verbose)
    return out.getvalue()


def test_the_undelete_in_a_terminal_is_the_golden_text() -> None:
    same_as_golden("undelete.txt", printed(settled(check(undelete()))))


def test_a_lasso_in_a_terminal_is_the_golden_text() -> None:
    same_as_golden("lasso.txt", printed(settled(check(polite()))))


def test_a_pipe_gets_no_colours_and_no_blanks_at_the_ends_of_its_steps() -> None:
    text = printed(check(undelete()))
    assert "\x1b" not in text
    steps = text[text.index("   1  recolour") :]
    assert [line for line in steps.splitlines() if line != line.rstrip()] == []
    assert "\x1b[" in printed(check(undelete()), colours=True)


def test_every_word_survives_a_narrow_terminal() -> None:
    wide, narrow = (printed(settled(check(undelete())), width=width) for width in (200, 50))
    steps = (text[text.index("   1  recolour") :].split() for text in (wide, narrow))
    assert next(steps) == next(steps)


def test_square_brackets_in_a_label_are_text_and_not_markup() -> None:
    trace = check(long_walk(1)).trace
    assert trace is not None
    step = trace.steps[0]._replace(label="[bold]x[/bold] [/]")
    out = io.StringIO()
    terminal.print_trace(Console(file=out, width=100), Trace("m", {}, trace.actors, trace.initial, (step,)))
    assert "counter-1 count  [bold]x[/bold] [/]" in out.getvalue()


def test_a_trace_that_is_told_is_sentences_and_what_changed_is_for_whom_it_interests() -> None:
    verdict = settled(check(undelete()))
    trace = verdict.trace
    assert trace is not None
    told = replace(trace, steps=tuple(s._replace(caption=f"{s.actor} does {s.step}.") for s in trace.steps))
    properties = tuple(p if p.trace is None else p._replace(trace=told) for p in verdict.properties)
    verdict = replace(verdict, properties=properties)
    short, whole = printed(verdict), printed(verdict, verbose=True)
    assert "   8  privacy does swap.\n\nproperty" in short
    assert "phase" not in short
    assert "some INSERT committed" in short
    assert "no_deadlock" not in short
    assert "-v shows every property" in short
    assert "phase  prepared → done" in whole
    assert "no_deadlock" in whole
    assert "-v shows" not in whole


def test_a_held_verdict_prints_no_trace_and_a_never_taken_step_is_named() -> None:
    text = printed(check(long_walk(0, 1)))
    assert "No explored transition takes count." in text
    assert "✗ never_there is violated\n  Nobody moves.\n" in text


@pytest.mark.parametrize("tty", [True, False])
def test_progress_is_drawn_only_on_a_terminal(tty: bool) -> None:
    out = io.StringIO()
    with terminal.ProgressBar(Console(file=out, force_terminal=tty, width=150)) as bar:
        bar(STANDING)
        bar.bar.refresh()
    said = "1,234 states, depth 9, 400 waiting, 20,000 states/s, 88 MB, 2 s; no estimate: the frontier still grows"
    assert (said in out.getvalue()) is tty
    assert (out.getvalue() == "") is not tty


def test_progress_goes_to_stderr_and_takes_what_a_search_says(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.ProgressBar() as bar:
        verdict = check(undelete(), progress=bar)
    assert verdict.states == 36
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_the_golden_html_once_installed() -> None:
    notebook.show_in_notebooks()
    verdict = settled(check(undelete()))
    html = verdict._repr_html_()  # type: ignore[attr-defined]
    assert html == notebook.verdict_html(verdict)
    same_as_golden("undelete.notebook.html", html + "\n")
    assert verdict.trace is not None
    assert verdict.trace._repr_html_() == notebook.trace_html(verdict.trace)  # type: ignore[attr-defined]


def test_a_notebook_escapes_what_a_model_says_and_tells_of_a_loop() -> None:
    trace = check(polite()).trace
    assert trace is not None
    step = trace.steps[0]._replace(label="<img src=x>")
    html = notebook.trace_html(Trace("<m>", {}, trace.actors, trace.initial, (step, *trace.steps[1:]), 1))
    assert "<img" not in html
    assert "<m>" not in html
    assert "Steps 2 to 5 repeat for ever." in html
