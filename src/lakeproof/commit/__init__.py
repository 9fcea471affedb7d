"""How a change becomes a snapshot: checks, policies, validation, the attempt. Pure; a runtime and a model obey it."""

from lakeproof.commit.attempt import Attempt, Happened, Phase, heard, what_became
from lakeproof.commit.change import ONLY_REMOVES, Command, Isolation, Mode, TableChange
from lakeproof.commit.conflict import Conflict
from lakeproof.commit.driver import Ended, call, drive
from lakeproof.commit.policy import POLICIES, CheckList, Line, Policy, Stamp, check_list, checks_of
from lakeproof.commit.snapshots import assigned_row_ids, new_snapshot
from lakeproof.commit.validation import (
    AlreadyCommitted,
    Answer,
    Commit,
    CommitWith,
    NothingLeft,
    Refuse,
    RunAgain,
    validate,
)
from lakeproof.commit.window import CommitWindow, follow, followed_all, open_window

__all__ = [
    "ONLY_REMOVES",
    "POLICIES",
    "AlreadyCommitted",
    "Answer",
    "Attempt",
    "CheckList",
    "Command",
    "Commit",
    "CommitWindow",
    "CommitWith",
    "Conflict",
    "Ended",
    "Happened",
    "Isolation",
    "Line",
    "Mode",
    "NothingLeft",
    "Phase",
    "Policy",
    "Refuse",
    "RunAgain",
    "Stamp",
    "TableChange",
    "assigned_row_ids",
    "call",
    "check_list",
    "checks_of",
    "drive",
    "follow",
    "followed_all",
    "heard",
    "new_snapshot",
    "open_window",
    "validate",
    "what_became",
]
