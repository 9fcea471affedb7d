"""From `--set name=value` to a checked `Setup`; what cannot be is refused with one sentence, its place and a hint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lakeproof.errors import InvalidInput
from lakeproof.models import parameter_values as value_of
from lakeproof.models.paimon.bounds import ALIASES, PARAMETERS, PRESETS, Setup

MOST_LEVELS = 9  # file ids have one digit for the level
SETTINGS = value_of.Parameters("Paimon", PARAMETERS, PRESETS, ALIASES)
parameter_help = SETTINGS.help

Parser = Callable[[str, str], Any]
"""From a parameter's name and value to what it means; what cannot be raises `InvalidInput`."""


def _at_least(least: int) -> Parser:
    return lambda name, value: value_of.count(name, value, least)


def _is(word: str) -> Parser:
    return lambda name, value: value_of.choice(name, value, PARAMETERS[name].kind.split("|")) == word


def _names(example: str) -> Parser:
    return lambda name, value: value_of.names(name, value, example)


FIELDS: tuple[tuple[str, Parser, str], ...] = (  # of `Setup`, how it is read, from which parameter
    ("num_writers", _at_least(1), "num-writers"),
    ("num_compactors", _at_least(0), "num-compactors"),
    ("partitions", _at_least(1), "num-partitions"),
    ("buckets", _at_least(1), "num-buckets"),
    ("col2", _names("red,blue"), "col2-values"),
    ("col3", _names("A,B"), "col3-values"),
    ("max_level", _at_least(1), "max-level"),
    ("max_writes", _at_least(0), "max-write-ops"),
    ("max_writes_per_key", _at_least(0), "max-write-ops-per-key"),
    ("max_writes_per_writer", _at_least(0), "max-write-ops-per-writer"),
    ("max_compactions", _at_least(0), "max-compactions"),
    ("max_compactions_per_compactor", _at_least(0), "max-compactions-per-compactor"),
    ("allow_updates", value_of.switch, "allow-updates"),
    ("allow_deletes", value_of.switch, "allow-deletes"),
    ("allow_overwrites", value_of.switch, "allow-overwrites"),
    ("streaming_sink", value_of.switch, "streaming-sink"),
    ("one_writer_per_bucket", value_of.switch, "one-writer-per-bucket"),
    ("dedicated_compactors", _is("dedicated"), "compactors"),
    ("committer_apart", _is("apart"), "committer"),
    ("put_if_absent", value_of.switch, "put-if-absent"),
    ("use_lock", value_of.switch, "use-lock"),
    ("dv_enabled", value_of.switch, "dv-enabled"),
    ("universal", _is("universal"), "compaction"),
    ("restored_sequence", _is("each-write"), "sequence-init"),
    ("later_file_wins", _is("later-file"), "sequence-ties"),
    ("sequence_field", value_of.switch, "sequence-field"),
    ("snapshot_ordering", value_of.switch, "sequence-snapshot-ordering"),
    ("file_deletion_check", value_of.switch, "file-deletion-check"),
    ("lsm_key_range_check", value_of.switch, "lsm-key-range-check"),
    ("dv_index_check", value_of.switch, "dv-index-check"),
    ("dv_conflict_check", value_of.switch, "dv-conflict-check"),
    ("strict_mode", value_of.switch, "strict-mode"),
    ("compaction_rollback", value_of.switch, "compaction-rollback"),
    ("compare_rules", value_of.switch, "compare-rules"),
    ("as_in_spec", value_of.switch, "as-in-spec"),
    ("prune_vectors", value_of.switch, "prune-vectors"),
    ("keep_deletes", value_of.switch, "keep-deletes"),
    ("read_vectors", value_of.switch, "read-vectors"),
)


def setup_from(parameters: Mapping[str, str]) -> Setup:
    """The checked configuration that the parameters name; `preset` picks a named one that the others then change."""
    given = SETTINGS.given(parameters)
    if "num-keys" in parameters and "col1-values" not in parameters:
        given.pop("col1-values", None)
    values = _with_defaults(SETTINGS.values(given), given)
    fields = {field: parse(name, values[name]) for field, parse, name in FIELDS}
    setup = Setup(given=given, keys=_keys(values, given), **fields)
    _refuse_impossible(setup)
    return setup


def _with_defaults(values: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The values with those defaults that other parameters decide."""
    corrected = "false" if values["as-in-spec"].lower() == "true" else "true"
    least = {"num-writers": 1, "num-compactors": 0}
    numbers = [value_of.count(name, values[name], from_, value_of.MOST_PROCESSES) for name, from_ in least.items()]
    decided = {
        "allow-overwrites": values["compaction-rollback"],
        "compactors": "dedicated" if numbers[1] > numbers[0] else "co-located",
        "prune-vectors": corrected,
        "keep-deletes": corrected,
        "read-vectors": corrected,
    }
    return {**values, **{name: value for name, value in decided.items() if name not in given}}


def _refuse_impossible(setup: Setup) -> None:
    """Topologies that cannot be are refused with one sentence."""
    for impossible, message, place, hint in _impossible(setup):
        if impossible:
            raise InvalidInput(message, place=f"--set {place}", hint=hint)


def _impossible(setup: Setup) -> Iterator[tuple[object, str, str, str]]:
    """Each way in which a topology cannot be: whether it is so here, the sentence, what was set, what to set."""
    writers, compactors, places = setup.num_writers, setup.num_compactors, setup.partitions * setup.buckets
    apart, alone = setup.dedicated_compactors, setup.one_writer_per_bucket
    more_buckets = "set num-buckets higher, or one-writer-per-bucket=false"
    no_bucket_each = f"cannot have a bucket each: there are {places}"
    dedicated = "set compactors=dedicated"
    yield (
        setup.max_level > MOST_LEVELS, f"an LSM tree has at most {MOST_LEVELS} levels here, not {setup.max_level}",
        f"max-level={setup.max_level}", "Paimon itself has 5",
    )  # fmt: skip
    yield alone and writers > places, f"{writers} writers {no_bucket_each}", "num-writers", more_buckets
    yield (
        alone and apart and compactors > places, f"{compactors} dedicated compactors {no_bucket_each}",
        "num-compactors", more_buckets,
    )  # fmt: skip
    yield (
        not apart and compactors > writers,
        f"{compactors} co-located compactors need as many writers: there are {writers}",
        "compactors=co-located", dedicated,
    )  # fmt: skip
    yield (
        setup.snapshot_ordering and setup.sequence_field,
        "sequence-snapshot-ordering excludes a sequence-field: both say which row of a key is the newest",
        "sequence-field=true", "set one of the two",
    )  # fmt: skip
    yield (
        setup.snapshot_ordering and compactors and not apart,
        "sequence-snapshot-ordering needs writers that only write",
        "sequence-snapshot-ordering=true", dedicated,
    )  # fmt: skip
    yield (
        setup.strict_mode and setup.committer_apart, "strict mode is modelled for processes that commit themselves",
        "strict-mode=true", "set committer=co-located",
    )  # fmt: skip
    yield (
        (setup.compaction_rollback or setup.strict_mode) and not setup.guarded,
        "strict mode and compaction rollback read the snapshots since, which nothing protects here",
        "put-if-absent=false", "set put-if-absent=true or use-lock=true",
    )  # fmt: skip


def _keys(values: Mapping[str, str], given: Mapping[str, str]) -> tuple[str, ...]:
    if values["col1-values"]:
        keys = value_of.names("col1-values", values["col1-values"])
        if "num-keys" in given and value_of.count("num-keys", given["num-keys"], 1) != len(keys):
            raise InvalidInput(
                f"num-keys={given['num-keys']} and col1-values name different numbers of keys",
                place="--set col1-values",
                hint="give one of the two",
            )
        return keys
    number = value_of.count("num-keys", values["num-keys"], 1)
    names = value_of.NAMES
    return tuple((*names, *(f"key{index}" for index in range(len(names), number)))[:number])
