"""Every parameter of the Paimon model with its meaning, the named presets, and the `Setup` that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeproof.models.parameter_values import Parameter

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
        "single-level|universal", "single-level", "one level goes one up, or what Paimon's strategy picks"
    ),
    "sequence-init": Parameter(
        "job-start|each-write", "job-start", "a writer counts on from an empty table, or restores the highest number"
    ),
    "sequence-ties": Parameter(
        "earlier-file|later-file", "earlier-file", "which row is read if two of a key have the same sequence number"
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
    later_file_wins: bool
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
