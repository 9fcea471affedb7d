"""Every parameter of the Paimon model: its name, its meaning, the named presets, and the checked `Setup` they make."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lakeproof.errors import InvalidInput


class Parameter(NamedTuple):
    """One `--set name=value`: the kind of its values, its default, and what it says."""

    kind: str  # "count", "switch", "names", or the choices with | between them
    default: str  # "": worked out from the others, as the help says
    help: str


PARAMETERS: dict[str, Parameter] = {
    "num-writers": Parameter("count", "2", "how many writers there are"),
    "num-compactors": Parameter("count", "0", "how many compactors there are"),
    "num-partitions": Parameter("count", "1", "partitions of the table"),
    "num-buckets": Parameter("count", "2", "buckets of each partition"),
    "num-keys": Parameter("count", "2", "primary keys; or name them with col1-values"),
    "col1-values": Parameter("names", "", "the primary keys, with commas between them"),
    "col2-values": Parameter("names", "red,blue", "the values of the second column"),
    "col3-values": Parameter("names", "A", "the values of the third column"),
    "max-level": Parameter("count", "2", "the highest level of a bucket's LSM tree"),
    "max-write-ops": Parameter("count", "3", "writes in all"),
    "max-write-ops-per-key": Parameter("count", "0", "writes per key; 0: no bound of its own"),
    "max-write-ops-per-writer": Parameter("count", "0", "writes per writer; 0: no bound of its own"),
    "max-compactions": Parameter("count", "2", "compactions in all (also max-compaction-ops)"),
    "max-compactions-per-compactor": Parameter("count", "0", "compactions per compactor; 0: no bound of its own"),
    "allow-updates": Parameter("switch", "true", "there are updates"),
    "allow-deletes": Parameter("switch", "true", "there are deletes"),
    "allow-overwrites": Parameter(
        "switch", "", "there are row-level commands that replace files (OVERWRITE); default: as compaction-rollback"
    ),
    "streaming-sink": Parameter("switch", "false", "updates set whole rows; else they read, change a column and write"),
    "one-writer-per-bucket": Parameter("switch", "true", "buckets are dealt out; else everybody works on all of them"),
    "compactors": Parameter(
        "co-located|dedicated", "", "in the writers' jobs, or jobs of their own; default: by their number"
    ),
    "committer": Parameter("co-located|apart", "co-located", "each process commits itself, or one commits for the job"),
    "put-if-absent": Parameter("switch", "true", "the store refuses to overwrite a snapshot file"),
    "use-lock": Parameter("switch", "false", "committing takes a lock and looks for the snapshot file first"),
    "dv-enabled": Parameter("switch", "true", "compactions write deletion vectors"),
    "compaction": Parameter(
        "single-level|universal", "single-level", "one level goes one up (the seed), or what Paimon's strategy picks"
    ),
    "sequence-init": Parameter(
        "job-start|each-write", "job-start", "a writer counts on from an empty table, or restores the highest number"
    ),
    "sequence-field": Parameter("switch", "false", "the user's own column orders the rows of a key"),
    "sequence-snapshot-ordering": Parameter("switch", "false", "rows take their snapshot's id as sequence number"),
    "file-deletion-check": Parameter("switch", "true", "a commit may not remove a file that is already removed"),
    "lsm-key-range-check": Parameter("switch", "false", "files of one level may not overlap (Java Paimon)"),
    "dv-index-check": Parameter("switch", "false", "an index file must replace the one that was read (pypaimon)"),
    "dv-conflict-check": Parameter("switch", "false", "the same, and no row of a rewritten file was deleted meanwhile"),
    "strict-mode": Parameter("switch", "false", "give up if another user compacted my partition meanwhile"),
    "compaction-rollback": Parameter("switch", "false", "a refused OVERWRITE rolls a COMPACT snapshot back"),
    "compare-rules": Parameter("switch", "false", "judge each rewrite by Java's and by pypaimon's rules too"),
    "as-in-spec": Parameter("switch", "false", "the public specification's merges, vectors and reads"),
    "prune-vectors": Parameter(
        "switch", "", "compaction drops vectors of the files it removes; default: not as-in-spec"
    ),
    "keep-deletes": Parameter("switch", "", "compaction sees -D rows; default: not as-in-spec"),
    "read-vectors": Parameter("switch", "", "consistent_read consults vectors; default: not as-in-spec"),
}
ALIASES = {"max-compaction-ops": "max-compactions"}

_TWO_BY_TWO = {"num-writers": "2", "num-compactors": "2", "num-partitions": "2", "num-buckets": "2", "num-keys": "4"}
_ONE_BUCKET = {"num-partitions": "1", "num-buckets": "1", "one-writer-per-bucket": "false"}
PRESETS: dict[str, dict[str, str]] = {
    "one-writer-per-bucket": {**_TWO_BY_TWO, "max-write-ops": "3", "max-compactions": "2"},
    "one-writer-per-bucket-lock": {
        **_TWO_BY_TWO, "max-write-ops": "3", "max-compactions": "2", "put-if-absent": "false", "use-lock": "true",
    },
    "two-writers-one-bucket": {**_ONE_BUCKET, "num-writers": "2", "num-keys": "2", "max-write-ops": "3"},
    "two-compactors": {
        **_ONE_BUCKET, "num-writers": "1", "num-compactors": "2", "num-keys": "1", "max-write-ops": "2",
        "max-compactions": "3", "max-level": "3", "allow-deletes": "false",
    },
    "no-put-if-absent": {"num-writers": "2", "num-buckets": "2", "max-write-ops": "2", "put-if-absent": "false"},
}  # fmt: skip

_NAMES = ("jack", "sarah", "john", "mary", "paul", "lucy", "adam", "ruth")


@dataclass(frozen=True, eq=False)  # compared by identity: functions that read a few of its fields are remembered by it
class Setup:
    """One checked configuration: what the parameters mean, and which process works on which buckets."""

    given: Mapping[str, str]
    num_writers: int
    num_compactors: int
    partitions: int
    buckets: int
    keys: tuple[str, ...]
    col2: tuple[str, ...]
    col3: tuple[str, ...]
    max_level: int
    max_writes: int
    max_writes_per_key: int
    max_writes_per_writer: int
    max_compactions: int
    max_compactions_per_compactor: int
    allow_updates: bool
    allow_deletes: bool
    allow_overwrites: bool
    streaming_sink: bool
    one_writer_per_bucket: bool
    dedicated_compactors: bool
    committer_apart: bool
    put_if_absent: bool
    use_lock: bool
    dv_enabled: bool
    universal: bool
    restored_sequence: bool
    sequence_field: bool
    snapshot_ordering: bool
    file_deletion_check: bool
    lsm_key_range_check: bool
    dv_index_check: bool
    dv_conflict_check: bool
    strict_mode: bool
    compaction_rollback: bool
    compare_rules: bool
    as_in_spec: bool
    prune_vectors: bool
    keep_deletes: bool
    read_vectors: bool

    def __post_init__(self) -> None:
        """The places of keys are worked out once: `bucket_of_key` and `keys_of_bucket`, dealt out in turn."""
        count = self.partitions * self.buckets
        places = {key: number % count for number, key in enumerate(self.keys)}
        object.__setattr__(self, "bucket_of_key", places)
        object.__setattr__(
            self,
            "keys_of_bucket",
            tuple(tuple(sorted(key for key in self.keys if places[key] == index)) for index in range(count)),
        )

    bucket_of_key: Mapping[str, int] = None  # type: ignore[assignment]
    keys_of_bucket: tuple[tuple[str, ...], ...] = ()

    def partition_of(self, bucket: int) -> int:
        """The partition that a bucket belongs to."""
        return bucket // self.buckets

    @property
    def guarded(self) -> bool:
        """Something stops a snapshot file from being overwritten."""
        return self.put_if_absent or self.use_lock

    def buckets_of_writer(self, writer: int) -> tuple[int, ...]:
        """The buckets that one writer (from 0) may write."""
        return self._dealt_to(writer, self.num_writers)

    def buckets_of_compactor(self, compactor: int) -> tuple[int, ...]:
        """The buckets that one compactor (from 0) may compact: its writer's, where they are one job."""
        return self._dealt_to(compactor, self.num_compactors if self.dedicated_compactors else self.num_writers)

    def _dealt_to(self, one: int, among: int) -> tuple[int, ...]:
        everything = range(self.partitions * self.buckets)
        return tuple(index for index in everything if not self.one_writer_per_bucket or index % among == one)


def parameter_help() -> dict[str, str]:
    """What each parameter says, with its values and its default."""
    return {
        name: f"{what.help} ({what.kind}{', default ' + what.default if what.default else ''})"
        for name, what in PARAMETERS.items()
    }


def setup_from(parameters: Mapping[str, str]) -> Setup:
    """The checked configuration that the parameters name; `preset` picks a named one that the others then change."""
    given = _with_preset(parameters)
    for name in given:
        if name not in PARAMETERS:
            raise _unknown("parameter", name, PARAMETERS, place=f"--set {name}={given[name]}")
    values = {name: given.get(name, what.default) for name, what in PARAMETERS.items()}

    def count(name: str, least: int = 0) -> int:
        return _count(name, values[name], least)

    def switch(name: str, default: bool = False) -> bool:
        return _switch(name, values[name]) if values[name] else default

    def choice(name: str) -> str:
        return _choice(name, values[name], PARAMETERS[name].kind.split("|"))

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
        col2=_names("col2-values", values["col2-values"]),
        col3=_names("col3-values", values["col3-values"]),
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
        dedicated_compactors=choice("compactors") == "dedicated" if values["compactors"] else compactors > writers,
        committer_apart=choice("committer") == "apart",
        put_if_absent=switch("put-if-absent"),
        use_lock=switch("use-lock"),
        dv_enabled=switch("dv-enabled"),
        universal=choice("compaction") == "universal",
        restored_sequence=choice("sequence-init") == "each-write",
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
    given = {ALIASES.get(name, name): value for name, value in parameters.items()}
    preset = given.pop("preset", "")
    if preset and preset not in PRESETS:
        raise _unknown("preset", preset, PRESETS, place=f"--set preset={preset}")
    merged = {**PRESETS.get(preset, {}), **given}
    if "num-keys" in given and "col1-values" not in given:
        merged.pop("col1-values", None)
    return merged


def _refuse_impossible(setup: Setup) -> None:
    """Topologies that cannot be are refused with one sentence."""
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
        keys = _names("col1-values", values["col1-values"])
        if "num-keys" in given and _count("num-keys", given["num-keys"], 1) != len(keys):
            raise InvalidInput(
                f"num-keys={given['num-keys']} and col1-values name different numbers of keys",
                place="--set col1-values",
                hint="give one of the two",
            )
        return keys
    number = _count("num-keys", values["num-keys"], 1)
    return tuple((*_NAMES, *(f"key{index}" for index in range(len(_NAMES), number)))[:number])


def _count(name: str, value: str, least: int) -> int:
    if not value.isdecimal() or int(value) < least:
        raise InvalidInput(
            f"{name} takes a number from {least} on, not {value!r}",
            place=f"--set {name}={value}",
            hint=f"for example {name}={max(least, 2)}",
        )
    return int(value)


def _switch(name: str, value: str) -> bool:
    return _choice(name, value.lower(), ["true", "false"]) == "true"


def _choice(name: str, value: str, choices: list[str]) -> str:
    if value not in choices:
        near = difflib.get_close_matches(value, choices, n=1) or choices[:1]
        raise InvalidInput(
            f"{name} is {' or '.join(choices)}, not {value!r}",
            place=f"--set {name}={value}",
            hint=f"did you mean {name}={near[0]}?",
        )
    return value


def _names(name: str, value: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in value.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise InvalidInput(
            f"{name} takes different names with commas between them, not {value!r}",
            place=f"--set {name}={value}",
            hint=f"for example {name}={PARAMETERS[name].default or 'jack,sarah'}",
        )
    return names


def _unknown(what: str, name: str, known: Iterable[str], *, place: str) -> InvalidInput:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    return InvalidInput(f"the Paimon model has no {what} {name!r}", place=place, hint=hint)
