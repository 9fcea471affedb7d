"""A MERGE of a jobs file reads the rows that it matches and leaves alone, as on a real table."""

from __future__ import annotations

from typing import Any

import pytest
from test_jobs_defects import table, verdict

from lakeproof.commit import writing
from lakeproof.format import Rows

MERGE = """merge into t using s on t.id = s.id
when matched and t.status = 'open' then update set status = 'closed'"""
INSERTS = " when not matched then insert (id, status) values (s.id, 'new')"


@pytest.mark.parametrize(("more", "read"), [(INSERTS, True), ("", False)])
def test_a_matched_row_is_read_where_the_merge_inserts(more: str, read: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of one id: the source row matches both, one is open, and the other is left alone."""
    right, found = writing._reads, set[bool]()

    def watched(command: Any, here: Any, new: Any, shape: Any) -> Rows:
        rows = right(command, here, new, shape)
        found.add(bool(rows))
        return rows

    monkeypatch.setattr(writing, "_reads", watched)
    text = table("id int, status string", level="serializable")
    text += f"-- job: stream\n{MERGE}{more};\n-- job: privacy\ndelete from t where id = 1;\n"
    assert verdict(text, "lakeproof").verdict == "holds"
    assert (True in found) == read
