"""The files that a scenario names, and a call of the table API as a change of them."""

from __future__ import annotations

import re

from lakeproof.commit import CheckList, Isolation, Mode, TableChange
from lakeproof.commit.policy import api_checks
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, Expression, applied, bound
from lakeproof.format import Bounds, DataFile, DeleteContent, DeleteFile, Value
from lakeproof.scenarios.history import History
from lakeproof.scenarios.table_api import COMMANDS, ApiCall, FileDeclaration
from lakeproof.sql.predicates import predicate_from_text

_CONTENTS = {"del": DeleteContent.POSITIONS, "dv": DeleteContent.VECTOR, "eq": DeleteContent.EQUALITY}


class NamedFiles:
    """Every data file that a scenario declared, whether it is still live or not."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.declared: dict[str, DataFile] = {}

    def declare(self, declaration: FileDeclaration) -> DataFile:
        """A data file of ten rows whose values nobody knows, with the statistics that the scenario gives."""
        shape = self.history.shape
        known = {column: (low, high) for column, low, high in declaration.columns}
        for column in known:
            if column not in shape.columns:
                hint = f"the columns are {', '.join(shape.columns)}"
                raise InvalidInput(f"There is no column {column!r}", place=declaration.place, hint=hint)
        bounds = tuple(
            Bounds(column, low, high, has_nulls=low is None, has_values=low is not None)
            for column, (low, high) in known.items()
        )
        partition = self._partition(declaration, known)
        file = DataFile(declaration.name, partition, len(shape.specs) - 1, 0, 10, bounds)
        self.declared[declaration.name] = file
        return file

    def _partition(self, declaration: FileDeclaration, known: dict[str, tuple[Value, Value]]) -> tuple[Value, ...]:
        spec = self.history.shape.specs[-1]
        if declaration.partition is not None:
            if len(declaration.partition) != len(spec):
                text = f"{declaration.name} has {len(declaration.partition)} partition values, the table {len(spec)}"
                raise InvalidInput(text, place=declaration.place)
            return declaration.partition
        partition = []
        for field in spec:
            ends = {applied(field.transform, end) for end in known.get(field.column, (None, None))}
            if len(ends) > 1:
                raise InvalidInput(f"{declaration.name} spans partitions of {field.column}", place=declaration.place)
            partition.append(ends.pop())
        return tuple(partition)

    def change(self, call: ApiCall, place: str) -> TableChange:
        """What the call wants to commit."""
        head = self.history.head
        added = tuple(self.declare(declaration) for declaration in call.add)
        twice = [file.path for file in added if head.has(file.path) and file.path not in call.remove]
        if twice:
            raise InvalidInput(f"{twice[0]} is in the table already", place=place, hint="remove it in the same call")
        scan = call.from_snapshot
        if scan and scan not in self.history.states:
            raise InvalidInput(f"There is no snapshot {scan} yet", place=place)
        partitions = tuple((f.spec_id, f.partition) for f in added) if call.verb == "replace-partitions" else None
        return TableChange(
            command=COMMANDS[call.verb],
            mode=Mode.MERGE_ON_READ,
            isolation=Isolation.SERIALIZABLE,
            scan_snapshot=scan or None,
            scan_sequence_number=(self.history.at(scan) if scan is not None else head).sequence_number,
            added_data_files=added,
            removed_data_files=tuple(self._known(name, place) for name in call.remove),
            added_delete_files=tuple(self._delete(name, place) for name in call.add_deletes),
            removed_delete_files=tuple(self._live_delete(name, place) for name in call.remove_deletes),
            required_data_files=tuple(self._known(name, place).path for name in call.exists),
            conflict_filter=self._filter(call.filter, place) or ALWAYS,
            row_filter=self._filter(call.row_filter, place),
            replaced_partitions=partitions,
        )

    def _known(self, name: str, place: str) -> DataFile:
        known = {file.path: file for file in self.history.head.data_files} | self.declared
        if name not in known:
            raise InvalidInput(
                f"There is no file {name!r}", place=place, hint=f"known are {', '.join(known) or 'none'}"
            )
        return known[name]

    def _live_delete(self, name: str, place: str) -> DeleteFile:
        live = {file.path: file for file in self.history.head.delete_files}
        if name not in live:
            known = ", ".join(live) or "none"
            raise InvalidInput(f"There is no live delete file {name!r}", place=place, hint=f"live are {known}")
        return live[name]

    def _filter(self, text: str, place: str) -> Expression | None:
        if not text:
            return None
        shape = self.history.shape
        try:
            return bound(predicate_from_text(text, place=place), shape.columns, case_sensitive=shape.case_sensitive)
        except InvalidInput as error:
            raise InvalidInput(error.message, place=place, hint=error.hint) from None

    def _delete(self, name: str, place: str) -> DeleteFile:
        found = re.fullmatch(r"([\w-]+?)_(del|dv|eq)\d*", name)
        if not found:
            raise InvalidInput(f"{name!r} does not say what it deletes", place=place, hint="end it in _del, _dv or _eq")
        data = self._known(found[1], place)
        if found[2] == "eq":
            content = DeleteContent.EQUALITY
            return DeleteFile(name, content, data.partition, data.spec_id, positions=None, equality_values=None)
        return DeleteFile(name, _CONTENTS[found[2]], data.partition, data.spec_id, positions=((data.path, 1),))


def checks_of_call(call: ApiCall) -> CheckList:
    """The checks that a call asks."""
    return api_checks(call.verb, call.checks, exists=bool(call.exists), keeps_sequence_number=call.keep_sequence_number)
