"""Two-phase commit: may one participant commit while another aborts? Run me, or `lakeproof check` me.

With `forgetful`, a participant may abort after it voted yes, as one does that forgets its vote in a crash.
"""

from collections.abc import Iterator
from typing import NamedTuple

from lakeproof.checker import Model, Outcome, Process, Step, always_of_all, check, eventually_each, reachable


class Ledger(NamedTuple):
    votes: int = 0  # how many voted yes
    decision: str = ""


def model(participants: int = 3, forgetful: bool = False) -> Model:
    def vote(ledger: Ledger, me: str) -> Iterator[Outcome]:
        """A participant votes yes and waits for the decision."""
        if me == "working":
            yield Outcome(ledger._replace(votes=ledger.votes + 1), "prepared")

    def give_up(ledger: Ledger, me: str) -> Iterator[Outcome]:
        """A participant aborts on its own, which it may only do before it votes."""
        if me == "working" or (forgetful and me == "prepared"):
            yield Outcome(ledger, "aborted", marks=("gave up",))

    def obey(ledger: Ledger, me: str) -> Iterator[Outcome]:
        """A participant does what was decided."""
        if ledger.decision and me in ("working", "prepared"):
            yield Outcome(ledger, ledger.decision)

    def decide(ledger: Ledger, me: str) -> Iterator[Outcome]:
        """The coordinator may commit once all have voted yes, and may abort at any time before."""
        if me == "deciding":
            if ledger.votes == participants:
                yield Outcome(ledger._replace(decision="committed"), "resting", label="commit", marks=("commit",))
            yield Outcome(ledger._replace(decision="aborted"), "resting", label="abort")

    steps = {
        "coordinator": (Step("decide", decide),),
        "participant": (Step("vote", vote), Step("give up", give_up), Step("obey", obey)),
    }
    members = [Process(f"participant-{number}", "working", "participant") for number in range(1, participants + 1)]
    ended = ("committed", "aborted", "resting")
    properties = (
        always_of_all("all_agree", lambda ledger, all_: not {"committed", "aborted"} <= set(all_), symmetric=True),
        eventually_each("all_end", lambda ledger, me: me in ended),
        reachable("some_commit", "commit"),
    )
    processes = (Process("coordinator", "deciding", "coordinator"), *members)
    return Model("two-phase commit", Ledger(), processes, steps, properties)


if __name__ == "__main__":
    honest, forgetful = check(model()), check(model(forgetful=True))
    assert (honest.verdict, honest.states, honest.unreached) == ("holds", 34, ())
    assert forgetful.verdict == "violated"
    assert forgetful.trace is not None
    print(f"two-phase commit {honest.verdict}: {honest.states} states. With participants that forget their vote:")
    for step in forgetful.trace.steps:
        print(f"  {step.actor:14} {step.step:8} {step.label:7} {step.caption}")
