"""From `--set name=value` to a checked `Setup`; what cannot be is refused with one sentence, its place and a hint."""

from __future__ import annotations

from collections.abc import Mapping

from lakeproof.errors import InvalidInput
from lakeproof.models import parameter_values as value_of
from lakeproof.models.paimon.bounds import ALIASES, PARAMETERS, PRESETS, Setup

MOST_LEVELS = 9  # file ids have one digit for the level


def parameter_help() -> dict[str, str]:
    """What each parameter says, with its values and its default."""
    return {name: str(what) for name, what in PARAMETERS.items()}


def setup_from(parameters: Mapping[str, str]) -> Setup:
    """The checked configuration that the parameters name; `preset` picks a named one that the others then change."""
    given = _with_preset(parameters)
    for name in given:
        if name not in PARAMETERS:
            raise value_of.unknown("Paimon", "parameter", name, PARAMETERS, place=f"--set {name}={given[name]}")
    values = {name: given.get(name, what.default) for name, what in PARAMETERS.items()}

    def count(name: str, least: int = 0) -> int:
        return value_of.count(name, values[name], least)

    def switch(name: str, default: bool = False) -> bool:
        return value_of.switch(name, values[name]) if values[name] or name in given else default

    def choice(name: str) -> str:
        return value_of.choice(name, values[name], PARAMETERS[name].kind.split("|"))

    as_in_spec = switch("as-in-spec")
    writers, compactors = count("num-writers", 1), count("num-compactors")
    rollback = switch("compaction-rollback")
    setup = Setup(
        given=given,
        num_writers=writers,
        num_compactors=compactors,
        partitions=count("num-partitions", 1),
        buckets=count("num-buckets", 1),
        keys=_keys(values, given),
        col2=value_of.names("col2-values", values["col2-values"], "red,blue"),
        col3=value_of.names("col3-values", values["col3-values"], "A,B"),
        max_level=count("max-level", 1),
        max_writes=count("max-write-ops"),
        max_writes_per_key=count("max-write-ops-per-key"),
        max_writes_per_writer=count("max-write-ops-per-writer"),
        max_compactions=count("max-compactions"),
        max_compactions_per_compactor=count("max-compactions-per-compactor"),
        allow_updates=switch("allow-updates"),
        allow_deletes=switch("allow-deletes"),
        allow_overwrites=switch("allow-overwrites", default=rollback),
        streaming_sink=switch("streaming-sink"),
        one_writer_per_bucket=switch("one-writer-per-bucket"),
        dedicated_compactors=choice("compactors") == "dedicated" if "compactors" in given else compactors > writers,
        committer_apart=choice("committer") == "apart",
        put_if_absent=switch("put-if-absent"),
        use_lock=switch("use-lock"),
        dv_enabled=switch("dv-enabled"),
        universal=choice("compaction") == "universal",
        restored_sequence=choice("sequence-init") == "each-write",
        later_file_wins=choice("sequence-ties") == "later-file",
        sequence_field=switch("sequence-field"),
        snapshot_ordering=switch("sequence-snapshot-ordering"),
        file_deletion_check=switch("file-deletion-check"),
        lsm_key_range_check=switch("lsm-key-range-check"),
        dv_index_check=switch("dv-index-check"),
        dv_conflict_check=switch("dv-conflict-check"),
        strict_mode=switch("strict-mode"),
        compaction_rollback=rollback,
        compare_rules=switch("compare-rules"),
        as_in_spec=as_in_spec,
        prune_vectors=switch("prune-vectors", default=not as_in_spec),
        keep_deletes=switch("keep-deletes", default=not as_in_spec),
        read_vectors=switch("read-vectors", default=not as_in_spec),
    )
    _refuse_impossible(setup)
    return setup


def _with_preset(parameters: Mapping[str, str]) -> dict[str, str]:
    merged = value_of.with_preset("Paimon", parameters, PRESETS, ALIASES)
    given = {ALIASES.get(name, name) for name in parameters}
    if "num-keys" in given and "col1-values" not in given:
        merged.pop("col1-values", None)
    return merged


def _refuse_impossible(setup: Setup) -> None:
    """Topologies that cannot be are refused with one sentence."""
    if setup.max_level > MOST_LEVELS:
        raise InvalidInput(
            f"an LSM tree has at most {MOST_LEVELS} levels here, not {setup.max_level}",
            place=f"--set max-level={setup.max_level}",
            hint="Paimon itself has 5",
        )
    places = setup.partitions * setup.buckets
    if setup.one_writer_per_bucket and setup.num_writers > places:
        raise InvalidInput(
            f"{setup.num_writers} writers cannot have a bucket each: there are {places}",
            place="--set num-writers",
            hint="set num-buckets higher, or one-writer-per-bucket=false",
        )
    if setup.one_writer_per_bucket and setup.dedicated_compactors and setup.num_compactors > places:
        raise InvalidInput(
            f"{setup.num_compactors} dedicated compactors cannot have a bucket each: there are {places}",
            place="--set num-compactors",
            hint="set num-buckets higher, or one-writer-per-bucket=false",
        )
    if not setup.dedicated_compactors and setup.num_compactors > setup.num_writers:
        raise InvalidInput(
            f"{setup.num_compactors} co-located compactors need as many writers: there are {setup.num_writers}",
            place="--set compactors=co-located",
            hint="set compactors=dedicated",
        )
    if setup.snapshot_ordering and setup.sequence_field:
        raise InvalidInput(
            "sequence-snapshot-ordering excludes a sequence-field: both say which row of a key is the newest",
            place="--set sequence-field=true",
            hint="set one of the two",
        )
    if setup.snapshot_ordering and setup.num_compactors and not setup.dedicated_compactors:
        raise InvalidInput(
            "sequence-snapshot-ordering needs writers that only write",
            place="--set sequence-snapshot-ordering=true",
            hint="set compactors=dedicated",
        )
    if setup.strict_mode and setup.committer_apart:
        raise InvalidInput(
            "strict mode is modelled for processes that commit themselves",
            place="--set strict-mode=true",
            hint="set committer=co-located",
        )
    if (setup.compaction_rollback or setup.strict_mode) and not setup.guarded:
        raise InvalidInput(
            "strict mode and compaction rollback read the snapshots since, which nothing protects here",
            place="--set put-if-absent=false",
            hint="set put-if-absent=true or use-lock=true",
        )


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
