"""A trace in a few sentences: how long it is, who takes part, and how its last commit was let through."""

from __future__ import annotations

from collections.abc import Sequence

from lakeproof.checker.verdicts.trace import Trace
from lakeproof.checker.verdicts.verdict import PropertyVerdict
from lakeproof.report.moments import Moment
from lakeproof.report.words import counted, several


def summarize_trace(
    trace: Trace, found: Sequence[PropertyVerdict], moments: Sequence[Moment], *, shortest: bool
) -> list[str]:
    """A sentence each: the run, what its last command did not see, what it was asked."""
    return [*_describe_run(trace, found, shortest), *_describe_unseen(moments), *_describe_validation(moments[-1])]


def _describe_run(trace: Trace, found: Sequence[PropertyVerdict], shortest: bool) -> list[str]:
    """How long the run is, whose it is, and whether it takes several."""
    movers = [actor for actor in trace.actors if any(step.actor == actor for step in trace.steps)]
    about = f"{counted(len(trace.steps), 'step')} by {several(movers)}" if movers else "Nobody moves"
    if trace.loop_start is not None:
        said = [f"{about}; {_loop_in_words(trace)}."]
    else:
        said = [f"{about}{', the shortest way there' if shortest and movers else ''}."]
    alone = [property.alone for property in found if property.alone is not None]
    if alone and len(movers) > 1 and not any(alone):
        said.append(f"It takes a race: {'neither' if len(movers) == 2 else 'none'} of them gets there alone.")
    elif alone and all(alone):
        said.append("It takes no race: a single process gets there while no other moves.")
    return said


def _describe_unseen(moments: Sequence[Moment]) -> list[str]:
    """What others committed while the command ran whose commit went wrong."""
    last = moments[-1]
    begun = next((m for m in reversed(moments) if m["actor"] == last["actor"] and m["title"].startswith("start")), None)
    if not last["broken"] or begun is None:
        return []
    said = [
        f"{moment['actor']} committed {badge['text']}"
        for moment in moments[begun["number"] : last["number"]]
        for badge in moment["badges"]
        if badge["tone"] == "commit" and moment["actor"] != last["actor"]
    ]
    return [f"While {last['actor']} was running, {several(said)}."] if said else []


def _describe_validation(last: Moment) -> list[str]:
    """What allowed the commit that went wrong."""
    passed = [check["check"] for check in last["checks"] if check["answer"] == "passed"]
    if not last["broken"] or not last["allowed"] or not passed:
        return []
    why = "had nothing to ask" if passed == ["nothing to ask"] else f"asked only {several(passed)}"
    return [f"The validation of {last['actor']} {why}, and let its commit through."]


def _loop_in_words(trace: Trace) -> str:
    first, last = (trace.loop_start or 0) + 1, len(trace.steps)
    if first > last:
        return "after them nobody moves any more"
    return f"step {first} repeats for ever" if first == last else f"steps {first} to {last} repeat for ever"
