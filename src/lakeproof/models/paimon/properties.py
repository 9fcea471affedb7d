"""What must be true of a Paimon table, and what must at least be possible, so that nothing holds for want of events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from lakeproof.checker.model import Property, always, always_of_each, eventually, reachable
from lakeproof.models.paimon.bounds import Setup
from lakeproof.models.paimon.lsm import read_key, remembered
from lakeproof.models.paimon.world import BAD, Bucket, Own, Shared


def sequential_snapshot_ids(shared: Shared) -> bool:
    """Snapshot ids have no gap: there are as many snapshot files as the head's id says."""
    return shared.version == shared.snapshots


def no_dangling_deletion_vectors(shared: Shared) -> bool:
    """Every deletion vector of the head is for a file of the head."""
    return all(not dangling(bucket) for bucket in shared.buckets)


@remembered
def dangling(bucket: Bucket) -> tuple[int, ...]:
    """The files that have a vector and are not in the bucket."""
    live = {file.id for file in bucket.files}
    return tuple(file_id for file_id, _ in bucket.vectors if file_id not in live)


def one_valid_row_per_key(shared: Shared) -> bool:
    """In levels 1 and above no two rows of one key are unmarked: a reader of vectors does not merge those levels."""
    return all(len(set(keys)) == len(keys) for keys in map(valid_keys, shared.buckets))


@remembered
def valid_keys(bucket: Bucket) -> tuple[str, ...]:
    """The keys of the unmarked rows of levels 1 and above."""
    deleted = dict(bucket.vectors)
    return tuple(
        row.key
        for file in bucket.files
        if file.level
        for position, row in enumerate(file.rows)
        if position not in deleted.get(file.id, ())
    )


def consistent_read(setup: Setup, shared: Shared) -> bool:
    """Every key reads as the ghost history says: no write is lost, none comes back, none overtakes another."""
    for number, key in enumerate(setup.keys):
        row = read_key(setup, shared.buckets[setup.bucket_of_key[key]], key, setup.read_vectors)
        if shared.expected[number][:2] != (("", "") if row is None else (row.col2, row.col3)):
            return False
    return True


def no_bad_state(shared: Shared, own: Own) -> bool:
    """Nobody has found that its prepared snapshot removes a file which is not in the snapshot it builds on."""
    return own.phase != BAD


def all_snapshots_committed(shared: Shared, owns: tuple[Any, ...]) -> bool:
    """Every write and every compaction that was started has its snapshot."""
    return shared.snapshots == shared.writes + shared.compactions


def properties(setup: Setup) -> tuple[Property, ...]:
    """The properties of this configuration; those that cannot be asked of it are left out."""
    asked = [
        always("sequential_snapshot_ids", sequential_snapshot_ids, seed_name="SequentialSnapshotIds"),
        always("consistent_read", partial(consistent_read, setup), seed_name="ConsistentRead"),
        always_of_each("no_bad_state", no_bad_state, seed_name="NoBadState"),
    ]
    if setup.dv_enabled:
        one_row = "DVEnabledOnlyOneValidRowPerPkInLevels1Plus"
        asked += [
            always("no_dangling_deletion_vectors", no_dangling_deletion_vectors, seed_name="NoDanglingDeletionVectors"),
            always("one_valid_row_per_key", one_valid_row_per_key, seed_name=one_row),
        ]
    if everything_lands(setup):
        asked.append(
            eventually(
                "all_snapshots_committed", all_snapshots_committed, seed_name="AllSnapshotsCommitted", symmetric=True
            )
        )
    return (*asked, *(reachable(f"some {mark}", mark) for mark in possible(setup)))


def everything_lands(setup: Setup) -> bool:
    """Nothing is refused by design, so that every operation must come to its snapshot.

    Compactors that share a bucket refuse each other; strict mode refuses by intent; taking one level up into another
    that overlaps it is what the key-range check refuses.
    """
    overlaps = setup.lsm_key_range_check and not setup.universal and setup.num_compactors > 0
    refuses = overlaps or setup.strict_mode or setup.allow_overwrites
    return setup.one_writer_per_bucket and setup.guarded and not refuses


def possible(setup: Setup) -> Iterator[str]:
    """The marks that some run of this configuration should carry: one per command, and one per branch of a check."""
    compacting = setup.num_compactors > 0 and setup.max_compactions > 0
    several = setup.num_writers + (setup.num_compactors if compacting else 0) > 1
    rivals = setup.num_compactors > 1 and setup.max_compactions > 1 and not setup.one_writer_per_bucket
    wanted = (
        ("insert committed", setup.max_writes > 0),
        ("update committed", setup.allow_updates and setup.max_writes > 1),
        ("delete committed", setup.allow_deletes and setup.max_writes > 1),
        ("overwrite committed", setup.allow_overwrites and setup.max_writes > 1),
        ("compaction committed", compacting),
        ("swap lost", setup.guarded and several and not setup.committer_apart),
        ("refused by file_deletion_conflict", setup.file_deletion_check and rivals),
        ("refused by lsm_conflict", setup.lsm_key_range_check and rivals),
        ("refused by deletion_vector_index_conflict", setup.dv_index_check and setup.dv_enabled and rivals),
        ("refused by deletion_vector_conflict", setup.dv_conflict_check and setup.dv_enabled and rivals),
        ("refused by strict_mode_conflict", setup.strict_mode and compacting and several),
        ("rolled back", setup.compaction_rollback and compacting),
        ("only java refuses", setup.compare_rules and rivals),
        ("only pypaimon refuses", setup.compare_rules and rivals),
    )
    return (mark for mark, is_possible in wanted if is_possible)
