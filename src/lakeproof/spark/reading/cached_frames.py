"""DataFrames that the user has cached follow their tables, as those of Spark's own tables do.

Spark finds cached data by the plan that was cached, and a plan of ours reads one snapshot. After a write the data of
such a plan is computed anew, from the same plan over the table's newest snapshot; a plan that asked for an older
snapshot stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lakeproof.errors import LakeproofError
from lakeproof.iceberg.tables.branches import TableAt, at_ref, ref_of
from lakeproof.iceberg.tables.tables import joined_name
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import items_of
from lakeproof.spark.reading.scan import TRAVELS, Scan
from lakeproof.spark.row_level.scan_filters import scanned_key


def follow_tables(engine: Engine) -> None:
    """Cached DataFrames of managed tables hold what those tables hold now."""
    gateway = engine.gateway
    manager = gateway.once("cache manager", lambda: gateway.session.sharedState().cacheManager())
    if not manager.isEmpty():
        _Cached(engine, manager).refresh()


class _Cached:
    """What Spark's cache holds, entry by entry."""

    def __init__(self, engine: Engine, manager: Any) -> None:
        self.engine, self.gateway, self.manager = engine, engine.gateway, manager
        self.seen: dict[int, tuple[str, ...]] = self.gateway.once("cached plans", dict)

    def refresh(self) -> None:
        """Each entry whose tables have moved on is computed from where they are."""
        held = self.gateway.hidden_field(self.manager, spark41.CACHED_DATA)
        entries = [self._current(entry) for entry in items_of(held)]
        if not any(changed for _, changed in entries):
            return
        kept = self.gateway.sequence(entry for entry, _ in entries if entry is not None).toIndexedSeq()
        self.gateway.set_hidden_field(self.manager, spark41.CACHED_DATA, kept)

    def _current(self, entry: Any) -> tuple[Any, bool]:
        """The entry as it should be, and whether that is another one; `None`: its plan does not fit any more."""
        plan = entry.plan()
        heads = {key: self._head(key) for key in _keys(plan)}
        keys = tuple(head.source.key for head in heads.values() if head is not None)
        if not keys or self.seen.get(plan.hashCode(), tuple(heads)) == keys:
            return entry, False
        builder = entry.cachedRepresentation().cacheBuilder()
        builder.clearCache(False)
        made = self._with_heads(plan, heads) if len(heads) == len(list(_keys(plan))) else None
        if made is None:
            return None, True
        self.seen[plan.hashCode()] = keys
        execution = spark41.execution_of(self.gateway.dataframe(made))
        relation = self.gateway.module(spark41.IN_MEMORY_RELATION).apply(builder, execution)
        return entry.copy(plan, relation), True

    def _head(self, key: str) -> Scan | None:
        """The scan of the table's newest snapshot; `None`: the table is gone."""
        source = self.engine.scans.sources.get(key)
        if source is None or key.endswith(TRAVELS):
            return None
        try:
            table = self.engine.find(joined_name(source.table.name()))
            at = source.table
            moved = at_ref(table, ref_of(at)) if table is not None and isinstance(at, TableAt) else table
        except LakeproofError:
            return None
        return None if moved is None else self.engine.scan(moved)

    def _with_heads(self, plan: Any, heads: dict[str, Scan | None]) -> Any | None:
        """The plan with each scan replaced by the newest one; `None`: a scan has other columns now."""
        if plan.nodeName() == "Project" and plan.child().nodeName() != "Project":
            head = heads.get(scanned_key(plan) or "")
            if head is not None:
                return self._renamed(plan, head)
        children = [self._with_heads(child, heads) for child in items_of(plan.children())]
        if None in children:
            return None
        return plan.withNewChildren(self.gateway.sequence(children)) if children else plan

    def _renamed(self, old: Any, head: Scan) -> Any | None:
        """The newest scan under the identities that the columns of the old one have in the plan above it."""
        new = spark41.execution_of(head.rows).analyzed()
        before, after = list(items_of(old.output())), list(items_of(new.output()))
        same = [(one.name(), one.dataType().json()) for one in before]
        if same != [(one.name(), one.dataType().json()) for one in after]:
            return None
        alias = self.gateway.named(spark41.ALIAS)
        empty = self.gateway.sequence(())
        columns = [
            alias(there, here.name(), here.exprId(), empty, self.gateway.none, empty)
            for here, there in zip(before, after, strict=True)
        ]
        return self.gateway.module(spark41.PROJECT).apply(self.gateway.sequence(columns), new)


def _keys(plan: Any) -> Iterator[str]:
    """The keys of the managed scans of a plan."""
    key = scanned_key(plan) if plan.nodeName() == "LogicalRelation" else None
    if key is not None:
        yield key
    for child in items_of(plan.children()):
        yield from _keys(child)
