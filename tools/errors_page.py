"""The reference page of errors, made from the exceptions and from the sentences that a refused commit says."""

from __future__ import annotations

from lakeproof import errors
from lakeproof.commit.checks import ALL_CHECKS
from lakeproof.commit.conflict import Conflict
from lakeproof.commit.explain import because

PATH = "docs/reference/errors.md"

INTRODUCTION = """\
# Errors

Exceptions are named after what the caller does next, and all of them are a `lakeproof.errors.LakeproofError`. On the
command line they are one sentence, a place and a hint, never a traceback; the exit code says which family it was. A
violated property is not an error: it is a verdict.
"""

AFTER = """\
## What bad input looks like

```
error: The table or view `peple` cannot be found
  at    line 1, column 15
        select * from peple
                      ^
```

`InvalidInput` has `message`, `place` and `hint`; with `--json` they are
`{"error": {"message": …, "place": …, "hint": …}}`.

## What a refused commit looks like

```
CommitConflict: DELETE on db.people was not committed
  check    no_new_delete_files
  because  snapshot 2 added delete-1.parquet, which may delete rows that the DELETE reads
  read at  snapshot 1; the table is now at snapshot 2
  next     run the DELETE again; it will scan snapshot 2
```

The exception's `conflict` holds the check, the snapshot and the files as values. Under the policy `lakeproof` a command
runs again by itself, `lakeproof.max-reruns` times (5 by default), before this reaches you.

## The reason, check by check

What "because" says, here for a DELETE, a snapshot 2 and a file f. [Checks and policies](checks-and-policies.md) says
who asks what, [why each check is there](../explanation/checks.md) shows what goes wrong without it.
"""

NEXT = {
    "InvalidInput": "fix the call",
    "CommitConflict": "run the command again: it must read again",
    "CommitRejected": "try again: nothing was written",
    "Unavailable": "try later: nothing was committed",
    "CommitUnknown": "look whether the snapshot is there; retry nothing, remove nothing before",
    "ModelError": "mend the model",
    "Defect": "report it, with the traceback that `LAKEPROOF_TRACEBACK=1` before the command prints",
}


def page() -> tuple[str, str]:
    """The path of the page and its text."""
    lines = ["| exception | says | do | exit code |", "|---|---|---|---|"]
    for name, action in NEXT.items():
        kind: type[errors.LakeproofError] = getattr(errors, name)
        said = " ".join((kind.__doc__ or "").split())
        lines.append(f"| `{name}` | {said} | {action} | {kind.exit_code} |")
    told = ["| check | because |", "|---|---|", *(f"| `{check}` | {_because(check)} |" for check in ALL_CHECKS)]
    return PATH, "\n".join([INTRODUCTION, *lines, "", AFTER, *told])


def _because(check: str) -> str:
    fates = ("updated", "deleted", "lost") if check == "target_rows" else ("",)
    said = [because(Conflict(check=check, snapshot=2, files=("f",), fate=fate), "DELETE") for fate in fates]
    return "; or ".join(dict.fromkeys(said))
