"""Verdicts and traces in the terminal: tables, differences per step, and progress while a search runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType

from rich import box
from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from lakeproof.checker.limits import Progress
from lakeproof.checker.verdicts.trace import Trace
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.report.moments import Moment
from lakeproof.report.tree import News
from lakeproof.report.view import TraceView, View, trace_view, view_of

TONES = {"good": "green", "bad": "bold red", "unknown": "yellow", "refused": "yellow", "commit": "cyan"}
LANES = ("blue", "dark_orange3", "cyan", "magenta", "deep_pink3", "green4", "dodger_blue2", "bright_black")
SIGNS = {"good": "✓", "bad": "✗", "unknown": "?"}


def print_verdict(console: Console, verdict: Verdict, *, verbose: bool = False) -> None:
    """The answer, what it is about, the properties, and the trace of the first violation.

    Where every step is told as a sentence, what each step changed is left out unless it is asked for, and so are the
    properties that are as they should be.
    """
    view = view_of(verdict)
    trace = verdict.trace if verdict.verdict == "violated" else None
    short = not verbose and trace is not None and _is_told(trace)
    _print_answer(console, view)
    if short and trace is not None:
        console.print()
        print_sentences(console, trace)
    console.print()
    console.print(_properties(view, short=short))
    for note in _notes(verdict):
        console.print(f"  {note}", style="yellow", highlight=False, markup=False)
    if short:
        console.print("  -v shows every property, and what each step changed", style="dim", highlight=False)
    elif trace is not None:
        console.print()
        _print_steps(console, view["traces"][0])


def _is_told(trace: Trace) -> bool:
    """Whether each step is a sentence that says who did what."""
    return all(step.actor and step.actor in step.caption for step in trace.steps)


def _print_answer(console: Console, view: View) -> None:
    console.print(_headline(view))
    for sentence in (*view["summary"], *view["bounds"]):
        _print_hanging(console, Text(f"  {sentence}"), 2, first=0)


def print_sentences(console: Console, trace: Trace) -> None:
    """The steps of a trace that is told in sentences."""
    for number, step in enumerate(trace.steps, 1):
        _print_hanging(console, Text(f"{number:>4}  {step.caption}"), 6, first=0)


def print_story(console: Console, verdict: Verdict) -> None:
    """The answer, and of a violation what each step did, a sentence each.

    How much was explored is the caller's to say, unless the search was cut.
    """
    view = view_of(verdict)
    if verdict.verdict != "unknown":
        view["summary"] = view["summary"][:-1]
    _print_answer(console, view)
    for note in verdict.notes if verdict.verdict == "unknown" else ():
        console.print(f"  {note}", style="yellow", highlight=False, markup=False)
    if verdict.verdict == "violated" and verdict.trace is not None:
        console.print()
        print_sentences(console, verdict.trace)


def print_trace(console: Console, trace: Trace) -> None:
    """The steps, each with what it changed."""
    shown = trace_view(trace, [])
    console.print(Text(shown["title"], style="bold"))
    for sentence in shown["summary"]:
        console.print(f"  {sentence}", highlight=False, markup=False)
    console.print()
    _print_steps(console, shown)


def _headline(view: View) -> Text:
    tone = TONES.get(view["tone"], "bold")
    return Text(f"{SIGNS.get(view['tone'], '·')} {view['title']}", style=tone)


def _notes(verdict: Verdict) -> list[str]:
    never = verdict.statistics.never_taken
    return [*verdict.notes, *([f"No explored transition takes {', '.join(never)}."] if never else [])]


def _properties(view: View, *, short: bool = False) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("property", "kind", "verdict", ""):
        table.add_column(name, overflow="fold")
    for found in view["properties"]:
        if short and found["tone"] == "good":
            continue
        verdict = Text(found["verdict"], style=TONES.get(found["tone"], ""))
        table.add_row(Text(found["name"]), found["kind"], verdict, Text(found["says"], style="dim"))
    return table


def _print_steps(console: Console, trace: TraceView) -> None:
    wide, told = max((len(actor) for actor in trace["actors"]), default=0), set[str]()
    for moment in trace["moments"][1:]:
        if trace["loop"] and moment["number"] == trace["loop"][0]:
            console.print(Text("      ⟲ from here on it repeats for ever", style="yellow"))
        _print_hanging(console, _step(moment, wide), wide + 7, first=0)
        caption = moment["caption"] if moment["caption"] not in told else ""  # the same words are told once
        told.add(caption)
        for line in (*([Text(caption, style="italic")] if caption else []), *_changes(moment)):
            _print_hanging(console, line, wide + 7, first=wide + 7)
    if trace["loop"] is not None:
        end = f"back to step {trace['loop'][0]}" if trace["loop"] else "from here on nobody moves any more"
        console.print(Text(f"      ↑ {end}", style="yellow"))


def _print_hanging(console: Console, line: Text, indent: int, *, first: int) -> None:
    """A line whose further parts begin under the text, without blanks at their ends."""
    for number, part in enumerate(line.wrap(console, max(20, console.width - indent))):
        part.rstrip()
        console.print(Text(" " * (indent if number else first)).append_text(part), soft_wrap=True)


def _changes(moment: Moment) -> Iterator[Text]:
    """What a step changed, and what was checked, a line each."""
    yield from (_change(item) for item in (*moment["news"], *moment["held"]))
    answers = dict.fromkeys((check["answer"], check["tone"]) for check in moment["checks"])
    for answer, tone in answers:
        names = ", ".join(check["check"] for check in moment["checks"] if check["answer"] == answer)
        line = Text(f"{answer}  ", style=TONES.get(tone, ""))
        yield line.append(names, style="not bold")


def _step(moment: Moment, wide: int) -> Text:
    lane = LANES[(moment["lane"] or 0) % len(LANES)]
    line = Text(f"{moment['number']:>4}  ")
    line.append(f"{moment['actor']:<{wide}} ", style=f"bold {lane}")
    line.append(moment["title"], style="bold")
    if moment["label"]:
        line.append(f"  {moment['label']}")
    for badge in moment["badges"]:
        line.append(f"  [{badge['text']}]", style=TONES.get(badge["tone"], "dim"))
    return line


def _change(news: News) -> Text:
    line = Text(f"{news['what']}  ", style="bold red" if news["tone"] == "bad" else "dim")
    if news["before"]:
        line.append("" if news["after"] else "− ")
        line.append(news["before"], style="dim strike")
        line.append(" → " if news["after"] else "", style="dim")
    if news["after"]:
        line.append(news["after"], style="bold red" if news["tone"] == "bad" else "not dim")
    return line


class ProgressBar:
    """Shows where a search stands, on stderr and only if that is a terminal; hand it to `check(progress=…)`.

    Use it in a `with`; the line is gone when the search ends.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(file=sys.stderr)
        columns = (SpinnerColumn(), TextColumn("{task.description}"))
        self.bar = Bar(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        self.task = self.bar.add_task("searching", total=None)

    def __enter__(self) -> ProgressBar:
        self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Show this standing."""
        self.bar.update(self.task, description=progress_in_words(progress))


def progress_in_words(progress: Progress) -> str:
    """Where a search stands, on one line."""
    return (
        f"{progress.states:,} states, depth {progress.depth}, {progress.frontier:,} waiting, "
        f"{progress.rate:,.0f} states/s, {progress.memory_mb:,.0f} MB, {progress.seconds:.0f} s; {progress.outlook}"
    )
