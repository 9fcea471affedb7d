"""DuckDB's own tables as a peer of `lakeproof conformance`: a connection per actor, a transaction per command.

    lakeproof conformance tests/scenarios/*.txt --against 'python examples/conformance/duckdb_peer.py'

It needs the package `duckdb` and nothing else.
"""

from __future__ import annotations

import json
import sys

import duckdb


class Session:
    """One scenario."""

    def __init__(self, request: dict) -> None:
        self.database = duckdb.connect(":memory:")
        self.name, self.open, self.refused = request["table"], {}, set()
        columns = ", ".join(f'"{c}" {t}' for c, t in zip(request["columns"], request["types"], strict=True))
        self.database.execute(f"create table {self.name} ({columns.replace('string', 'varchar')})")
        marks = ", ".join("?" * len(request["columns"]))
        for row in (row for rows in request["files"] for row in rows):
            self.database.execute(f"insert into {self.name} values ({marks})", row)

    def scan(self, request: dict) -> dict:
        """Begin a transaction and run the command in it; what it reads is what is committed now."""
        sql, actor = request["sql"], request["actor"]
        if "rewrite_data_files" in sql or "overwrite" in sql.lower():
            return {"skip": "DuckDB has no such command"}
        self.open[actor] = connection = self.database.cursor()
        connection.execute("begin transaction")
        connection.execute(
            f"select count(*) from {self.name}"
        ).fetchall()  # a transaction reads from its first query on
        try:
            connection.execute(sql)
        except duckdb.TransactionException:
            self.refused.add(actor)
        except (duckdb.ParserException, duckdb.BinderException, duckdb.ConversionException) as error:
            return {"skip": str(error).splitlines()[0]}
        return {}

    def commit(self, request: dict) -> dict:
        """Commit; a transaction that met another's row was refused before."""
        actor = request["actor"]
        connection = self.open.pop(actor)
        if actor in self.refused:
            self.refused.discard(actor)
            connection.execute("rollback")
            return {"answer": "conflict"}
        try:
            connection.execute("commit")
        except duckdb.TransactionException:
            return {"answer": "conflict"}
        return {"answer": "ok"}

    def rows(self) -> dict:
        """What a reader sees."""
        return {"rows": [list(row) for row in self.database.execute(f"select * from {self.name}").fetchall()]}


def main() -> None:
    """Answer each line."""
    session: Session | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "begin":
                session, answer = Session(request), {}
            elif request["do"] == "end" or session is None:
                session, answer = None, {}
            elif request["do"] == "rows":
                answer = session.rows()
            else:
                answer = getattr(session, request["do"])(request)
        except duckdb.Error as error:
            answer = {"error": str(error).splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
