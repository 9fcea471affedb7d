"""Which files a compaction rewrites, and which of them together: bins of one partition, up to the target size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, Expression, columns_of, may_match_file
from lakeproof.iceberg.committing.values import shape_of
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.compaction.rewrite_files import Piece
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm.failures import translate_spark_errors
from lakeproof.spark.row_level.scan_filters import filter_from_text
from lakeproof.spark.row_level.scanned_files import Home, homes_of

_SIZE = 512 * 1024 * 1024
_CRUMB = 4  # a file that is so many times smaller than the largest of its partition is one
_SEVERAL = 3
MOST_JOINED = 50
Partition = tuple[int, tuple[Any, ...]]
"""A spec and the values of its fields."""


class CompactionOptions(NamedTuple):
    """What a compaction may be told, by Iceberg's names.

    Unlike Iceberg's, it takes two files for enough and one delete file for a reason: dead rows are what it is for. A
    file is never divided, so that none is rewritten because it is large.
    """

    target_bytes: int = _SIZE
    min_bytes: int = _SIZE * 3 // 4
    min_input_files: int = 2
    delete_file_threshold: int = 1
    rewrite_all: bool = False
    partial_progress: bool = False
    max_commits: int = 10


_NAMES = {
    "target-file-size-bytes": "target_bytes",
    "min-file-size-bytes": "min_bytes",
    "min-input-files": "min_input_files",
    "delete-file-threshold": "delete_file_threshold",
    "rewrite-all": "rewrite_all",
    "partial-progress.enabled": "partial_progress",
    "partial-progress.max-commits": "max_commits",
}
_MAY_BE_NONE = ("min-file-size-bytes",)
_ASK_NOTHING = {
    "max-concurrent-file-group-rewrites": False,
    "use-starting-sequence-number": True,
    "remove-dangling-deletes": True,
}
"""Options that change nothing here, and whether each is a flag: the table's policy says how rewritten files are
stamped, and delete files that reach no other file go with the files that they reached."""


def options_of(table: Table, given: Mapping[str, str]) -> CompactionOptions:
    """The options of a call; the target size is the table's `write.target-file-size-bytes` unless said otherwise."""
    target = table.properties.get("write.target-file-size-bytes")
    said = {**({"target-file-size-bytes": target} if target else {}), **given}
    values: dict[str, Any] = {}
    for name, text in said.items():
        if name not in _NAMES and name not in _ASK_NOTHING:
            raise InvalidInput(f"there is no option `{name}`", hint=f"known are {', '.join((*_NAMES, *_ASK_NOTHING))}")
        if name in _ASK_NOTHING:
            _parsed(name, text, _ASK_NOTHING[name])
        else:
            values[_NAMES[name]] = _parsed(name, text, isinstance(getattr(CompactionOptions(), _NAMES[name]), bool))
    size = values.get("target_bytes", _SIZE)
    found = CompactionOptions(**{"min_bytes": size * 3 // 4, **values})
    if found.min_bytes > found.target_bytes:
        hint = f"the target is {found.target_bytes} bytes: say target-file-size-bytes too, or less"
        raise InvalidInput(f"option `min-file-size-bytes` cannot be {found.min_bytes}", hint=hint)
    return found


def _parsed(name: str, text: str, is_flag: bool) -> bool | int:
    if is_flag and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if is_flag or not text.isdecimal():
        raise InvalidInput(f"option `{name}` cannot be {text!r}", hint="true or false" if is_flag else "a whole number")
    if int(text) == 0 and name not in _MAY_BE_NONE:
        raise InvalidInput(f"option `{name}` cannot be 0", hint="it is at least 1")
    return int(text)


def condition(engine: Engine, table: Table, where: str | None) -> Expression:
    """The predicate that chooses files; it must be one that statistics can answer."""
    if where is None:
        return ALWAYS
    with translate_spark_errors(engine.gateway, where):
        chosen = filter_from_text(engine, table, where)
    if not chosen.exact:
        raise InvalidInput("this predicate does not choose files", place="where", hint="compare columns with literals")
    return chosen.filter


def pieces_of(
    engine: Engine,
    table: Table,
    chosen: Expression,
    options: CompactionOptions,
    *,
    among: frozenset[Partition] | None = None,
    but: frozenset[str] = frozenset(),
) -> list[Piece]:
    """The bins to rewrite, of these partitions alone if `among` says so, without the files of `but`."""
    groups: dict[Partition, list[Home]] = {}
    shape = shape_of(table)
    for home in homes_of(engine, table, columns=columns_of(chosen)).values():
        partition = (home.file.spec_id, home.partition)
        if home.path in but or (among is not None and partition not in among):
            continue
        if _is_worth_it(home, options) and may_match_file(chosen, home.file, shape):
            groups.setdefault(partition, []).append(home)
    bins = [bin_ for homes in groups.values() for bin_ in packed(homes, options.target_bytes)]
    return [bin_ for bin_ in bins if _is_enough(bin_, options)]


def packed(homes: Sequence[Home], target: int) -> list[list[Home]]:
    """Neighbours together, up to the target size."""
    bins: list[list[Home]] = []
    for home in homes:
        if not bins or sum(one.bytes for one in bins[-1]) + home.bytes > target:
            bins.append([])
        bins[-1].append(home)
    return bins


def with_crumbs(homes: Iterable[Home], target: int) -> list[Piece]:
    """Files that are written again anyway: each by itself, but where a partition has several crumbs they join another.

    A piece of several files is a scan of its own, which costs as much as two tasks; so there are no more than
    `MOST_JOINED` of them.
    """
    partitions: dict[Partition, list[Home]] = {}
    for home in homes:
        partitions.setdefault((home.file.spec_id, home.partition), []).append(home)
    joined: list[list[Home]] = []
    for same in partitions.values():
        largest = max(home.bytes for home in same)
        whole = [home for home in same if home.bytes * _CRUMB >= largest]
        crumbs = [home for home in same if home.bytes * _CRUMB < largest]
        if len(crumbs) >= _SEVERAL:
            joined += packed([min(whole, key=lambda home: home.bytes), *crumbs], target)
    joined = sorted(joined, key=len, reverse=True)[:MOST_JOINED]
    taken = {home.path for piece in joined for home in piece}
    alone = [[home] for same in partitions.values() for home in same if home.path not in taken]
    return [*joined, *alone]


def partitions_of(pieces: Iterable[Piece]) -> frozenset[Partition]:
    """The partitions that the pieces lie in."""
    return frozenset((home.file.spec_id, home.partition) for piece in pieces for home in piece)


def _is_worth_it(home: Home, options: CompactionOptions) -> bool:
    small = home.bytes < options.min_bytes
    return options.rewrite_all or small or home.delete_files >= options.delete_file_threshold


def _is_enough(bin_: Sequence[Home], options: CompactionOptions) -> bool:
    deletes = any(home.delete_files >= options.delete_file_threshold for home in bin_)
    return options.rewrite_all or deletes or len(bin_) >= max(options.min_input_files, 2)
