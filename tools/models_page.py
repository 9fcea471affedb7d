"""The reference page of what models promise and what can be set, made from the models themselves."""

from __future__ import annotations

from collections.abc import Mapping

from lakeproof.checker.model import Model
from lakeproof.commit.policy_text import named_policy
from lakeproof.models import files, iceberg, paimon, sink
from lakeproof.models.files import bounds as files_bounds
from lakeproof.models.iceberg import bounds
from lakeproof.models.paimon import bounds as paimon_bounds

PATH = "docs/reference/properties.md"

INTRODUCTION = """\
# Properties, parameters and presets

What `lakeproof check iceberg`, `files`, `sink` and `paimon` ask, and what `--set NAME=VALUE` may change. Made from the
models (`make docs`); `lakeproof check MODEL --parameters` prints the parameters.

A property is of one of three kinds. **always**: it holds in every state. **eventually**: every fair run comes to where
it holds. **reachable**: some run gets there; one that is not reached says that something could not be tested, and does
not count in the verdict unless `--require` names it. Every model also has **no_deadlock**: whoever may not rest can
always go on. Reachable properties depend on the configuration (one per command, and one per check that can refuse), so
they are not listed here.
"""

MEANINGS = {
    "iceberg": {
        "consistent_read": "every snapshot shows the rows that its commits, each with the effect it is justified by, "
        "leave",
        "isolation_kept": "each commit is justified at its isolation level: serializable as if it ran at its commit, "
        "snapshot as if at one moment since its scan and nobody wrote its rows since",
        "sequential_sequence_numbers": "a snapshot's sequence number is its parent's and one",
        "no_dangling_delete_files": "no commit adds a delete file that names a data file which is not in its snapshot",
        "row_ids_are_unique": "with `row-ids=true`, as the next three: no two rows of the head have one id",
        "row_ids_are_kept": "a row that is moved or changed keeps its id",
        "row_ids_are_never_reused": "a new row has an id that no row had before; the table's next id only grows",
        "last_changes_are_told": "a changed row has the number of its commit, a compaction's rows those that "
        "they had: an equal id and an equal number is the same row, moved",
        "no_false_aborts": "a command is refused or run again only where committing would have been an anomaly; asked "
        "in small spaces, or with `measure-aborts=true`; does not count unless required",
        "operations_eventually_commit_or_abort": "every writer comes to rest",
        "all_snapshots_committed": "every command that was started has an end: committed, aborted, crashed, or nothing "
        "left to do",
        "no_deadlock": "a writer with a command in hand can always go on",
    },
    "files": {
        "committed_snapshots_are_whole": "every file that the table's metadata names is there, also those of a table "
        "in the same folder",
        "acknowledged_rows_stay": "an acknowledged row is in the head until somebody drops the table who had read it; "
        "so is a column",
        "no_command_commits_twice": "no command has two snapshots, and no row is in the head twice",
        "what_failed_is_not_there": "a command that was said to have failed has no snapshot",
        "only_orphans_are_left": "where nobody is at work, a file that nothing names was left by a command that died "
        "or heard nothing",
        "tags_stay": "an expiry drops no tag that was made meanwhile",
        "row_ids_are_unique": "no two appended files number their rows alike",
        "scans_are_whole": "a scan that ends has read all rows of one snapshot",
        "everybody_comes_to_rest": "every fair run ends with nobody at work",
        "no_deadlock": "whoever has something in hand can always go on",
    },
    "sink": {
        "each_record_at_most_once": "no record of the log is in the table twice",
        "no_record_is_left_out": "when a sink says that it has read the log, every record is in the table",
        "the_log_is_read": "every fair run comes to where the log is read",
        "no_deadlock": "a sink that has not read the log can always go on",
    },
    "paimon": {
        "sequential_snapshot_ids": "snapshot ids have no gap",
        "consistent_read": "every key reads as the ghost history says",
        "no_bad_state": "no commit removes a file that is not there",
        "no_dangling_deletion_vectors": "every vector is for a file of its snapshot",
        "one_valid_row_per_key": "above level 0 no two rows of a key are unmarked",
        "all_snapshots_committed": "every operation comes to its snapshot; asked where nothing is refused by design",
        "no_deadlock": "whoever has something under way can always go on",
    },
}


def page() -> tuple[str, str]:
    """The path of the page and its text."""
    ours = named_policy("lakeproof")
    iceberg_model = iceberg.model_of(iceberg.configured({"format-version": "3", "row-ids": "true"}, ours))
    files_model = files.build({"scans": "1"})
    paimon_model = paimon.build({})
    parts = [
        INTRODUCTION,
        _model("iceberg", iceberg_model, iceberg.parameter_help(), bounds.PRESETS),
        _model("files", files_model, files.parameter_help(), files_bounds.PRESETS),
        _model("sink", sink.build({}), sink.parameter_help(), sink.PRESETS),
        _model("paimon", paimon_model, paimon.parameter_help(), paimon_bounds.PRESETS),
    ]
    return PATH, "\n".join(parts)


def _model(name: str, model: Model, parameters: Mapping[str, str], presets: Mapping[str, Mapping[str, str]]) -> str:
    title = name.capitalize()
    claims = [claim for claim in model.claims() if claim.kind != "reachable"]
    lines = [f"## {title}", "", f"### Properties of {title}", ""]
    lines += ["| property | kind | in the public specification | says |", "|---|---|---|---|"]
    lines += [f"| `{c.name}` | {c.kind} | {c.seed_name or '–'} | {MEANINGS[name][c.name]} |" for c in claims]
    lines += ["", f"### Parameters of {title}", "", "| parameter | |", "|---|---|"]
    lines += [f"| `{parameter}` | {text.replace('|', ' or ')} |" for parameter, text in parameters.items()]
    lines += ["", f"### Presets of {title}", "", "| preset | sets |", "|---|---|"]
    lines += [f"| `{preset}` | {_sets(values)} |" for preset, values in presets.items()]
    return "\n".join([*lines, ""])


def _sets(values: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}={value}`" for name, value in values.items()) or "nothing: the defaults"
