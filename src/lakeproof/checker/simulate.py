"""Random walks, for spaces that nobody can exhaust: they may find a violation but never prove that there is none."""

from __future__ import annotations

import random

from lakeproof.checker.limits import Watch
from lakeproof.checker.readable import Exploration, Successors
from lakeproof.checker.tables import State
from lakeproof.checker.verdicts.ledger import Ledger

LONGEST_WALK = 1_000  # steps after which a walk that does not end is left


def walk(successors: Successors, ledger: Ledger, watch: Watch, walks: int, seed: int) -> Exploration:
    """Walk at random from the initial state, again and again; `states` counts the distinct ones met."""
    chance = random.Random(seed)
    start = successors.tables.initial()
    met: set[State] = {start}
    ways: dict[State, list[State]] = {start: [start]}
    ledger.check_state(start, 0)
    transitions = deepest = terminals = 0
    cut = "simulation"
    for _ in range(walks):
        path = [start]
        while len(path) <= LONGEST_WALK:
            moves, known = successors.of(path[-1]), len(ledger.found)
            if not moves:
                terminals += 1
                ledger.note(ledger.at_rest(path[-1]), len(path) - 1, path[-1])
            else:
                position, move, after = chance.choice(moves)
                ledger.note(ledger.of_move(move), len(path), path[-1], move, position)
                if after not in met:
                    met.add(after)
                    ledger.check_state(after, len(path))
            for finding in list(ledger.found.values())[known:]:
                ways.setdefault(finding.state, list(path) if finding.state == path[-1] else [*path, finding.state])
            if not moves:
                break
            path.append(after)
            transitions += 1
        deepest = max(deepest, len(path) - 1)
        cut = watch.look(len(met), transitions, deepest, 1) or cut
        if watch.cut.first and ledger.violated:
            cut = "first violation"
        if cut != "simulation":
            break
    counts = successors.counts()
    return Exploration(
        len(met), transitions, deepest, terminals, cut, None, counts, lambda finding: ways[finding.state]
    )
