"""Renamings that no step and no property can tell apart: of column values, and of buckets with their keys and jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import Any

from lakeproof.checker.model import ValueSymmetry
from lakeproof.models.paimon.bounds import Setup
from lakeproof.models.paimon.world import (
    Append,
    Base,
    Bucket,
    Busy,
    CompactionPlan,
    Expected,
    Handed,
    LevelFile,
    Own,
    Rewrite,
    Row,
    Shared,
    Work,
)

MOST = 48  # trying more of them than this costs more than they save


@dataclass(frozen=True, eq=False)
class Renaming:
    """One permutation of the values of col2 and col3, of buckets with their keys, and of the jobs that own buckets.

    Worlds are many and their buckets few, so each bucket is renamed once.
    """

    col2: Mapping[str, str]
    col3: Mapping[str, str]
    keys: Mapping[str, str]
    key_order: tuple[int, ...]  # which key's values come to stand at each place
    bucket_order: tuple[int, ...]  # likewise for buckets
    bucket_after: tuple[int, ...]  # where each bucket goes
    actor_after: tuple[int, ...]
    buckets: dict[Bucket, Bucket] = field(default_factory=dict)
    wanted: dict[Expected, Expected] = field(default_factory=dict)

    def row(self, row: Row) -> Row:
        """The renamed row; a deleted row has no values."""
        return Row(row.sequence, row.kind, self.keys[row.key], self.col2[row.col2], self.col3[row.col3])

    def table(self, buckets: tuple[Bucket, ...]) -> tuple[Bucket, ...]:
        """The renamed buckets in their new places; a bucket's keys keep their order, so positions stay."""
        renamed = self.buckets
        return tuple([renamed.get(buckets[at]) or self._bucket(buckets[at]) for at in self.bucket_order])

    def _bucket(self, bucket: Bucket) -> Bucket:
        files = tuple(LevelFile(file.id, file.level, tuple(map(self.row, file.rows))) for file in bucket.files)
        renamed = self.buckets[bucket] = Bucket(files, bucket.vectors, bucket.writes)
        return renamed

    def _expected(self, want: Expected) -> Expected:
        renamed = want._replace(col2=self.col2[want.col2], col3=self.col3[want.col3])
        self.wanted[want] = renamed
        return renamed

    def work(self, work: Work) -> Work:
        """The renamed operation."""
        return (
            CompactionPlan(self.bucket_after[work.bucket], work.level)
            if isinstance(work, CompactionPlan)
            else self.change(work)
        )

    def change(self, work: Append | Rewrite) -> Append | Rewrite:
        """The renamed change of one bucket."""
        if isinstance(work, Append):
            return self._append(work)
        rows, write = tuple(map(self.row, work.rows)), self._append(work.write) if work.write else None
        return work._replace(bucket=self.bucket_after[work.bucket], rows=rows, write=write)

    def _append(self, work: Append) -> Append:
        return Append(self.bucket_after[work.bucket], self.row(work.row), work.columns)

    def shared(self, shared: Shared) -> Shared:
        """The renamed table, queue, ghosts and bounds."""
        order, expected, inserted, ops_on = self.key_order, shared.expected, shared.inserted, shared.ops_on
        return Shared(
            shared.version,
            shared.snapshots,
            shared.lost,
            self.table(shared.buckets),
            tuple([self.wanted.get(expected[at]) or self._expected(expected[at]) for at in order]),
            tuple([inserted[at] for at in order]),
            tuple([ops_on[at] for at in order]) if ops_on else (),
            shared.writes,
            shared.compactions,
            shared.locked,
            tuple([Handed(self.actor(actor), self.change(change)) for actor, change in shared.queue]),
            tuple(map(self.table, shared.before)),
        )

    def actor(self, actor: int) -> int:
        """The job that comes to own the buckets; a committer, and jobs that own none, stay who they are."""
        return self.actor_after[actor] if 0 <= actor < len(self.actor_after) else actor

    def own(self, own: Own) -> Own:
        """The renamed process."""
        actor = self.actor(own.actor)
        if not isinstance(own, Busy):
            return own._replace(actor=actor)
        base = Base(own.base.version, self.table(own.base.buckets)) if own.base else None
        return Busy(actor, own.done, own.phase, self.work(own.work), own.unsafe, base, self.actor(own.waiter))


def symmetries(setup: Setup) -> tuple[ValueSymmetry, ...]:
    """All renamings of this configuration but the one that changes nothing; none where there are too many."""
    colours = list(permutations(setup.col2))
    letters = list(permutations(setup.col3))
    places = list(bucket_permutations(setup))
    if len(colours) * len(letters) * len(places) > MOST:
        places = places[:1]
    if len(colours) * len(letters) > MOST:
        return ()
    found = [renaming(setup, *chosen) for chosen in product(colours, letters, places)]
    return tuple(ValueSymmetry(one.shared, one.own) for one in found[1:])


def bucket_permutations(setup: Setup) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Where buckets and jobs may go, the identity first: jobs change places, and each job's buckets among themselves.

    Strict mode looks at partitions, so there buckets stay; and a job's new buckets must have as many keys.
    """
    count, jobs = setup.partitions * setup.buckets, setup.num_writers if setup.one_writer_per_bucket else 1
    identity = tuple(range(count)), tuple(range(jobs))
    yield identity
    if setup.strict_mode or not jobs_are_alike(setup):
        return
    for buckets in permutations(range(count)):
        actors = dict(sorted((index % jobs, target % jobs) for index, target in enumerate(buckets)))
        fits = all(actors[index % jobs] == target % jobs for index, target in enumerate(buckets))
        sizes = all(len(setup.keys_of_bucket[i]) == len(setup.keys_of_bucket[t]) for i, t in enumerate(buckets))
        found = buckets, tuple(actors.values())
        if fits and sizes and found != identity:
            yield found


def jobs_are_alike(setup: Setup) -> bool:
    """Every job that owns buckets has a compactor or none has, and there are few enough buckets to try all orders."""
    compactors = setup.num_compactors
    return setup.partitions * setup.buckets <= 6 and (
        not setup.one_writer_per_bucket or compactors in (0, setup.num_writers)
    )


def renaming(setup: Setup, colours: Any, letters: Any, places: Any) -> Renaming:
    """The renaming that takes the values and buckets, in their order, to these."""
    buckets, actors = places
    keys = {
        key: target
        for index, keys in enumerate(setup.keys_of_bucket)
        for key, target in zip(keys, setup.keys_of_bucket[buckets[index]], strict=True)
    }
    back = {target: key for key, target in keys.items()}
    return Renaming(
        col2={"": "", **dict(zip(setup.col2, colours, strict=True))},
        col3={"": "", **dict(zip(setup.col3, letters, strict=True))},
        keys=keys,
        key_order=tuple(setup.keys.index(back[key]) for key in setup.keys),
        bucket_order=tuple(buckets.index(index) for index in range(len(buckets))),
        bucket_after=buckets,
        actor_after=actors,
    )
