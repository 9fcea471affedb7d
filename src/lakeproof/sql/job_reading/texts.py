"""The text of a statement of a jobs file before it is parsed, and CALL, which the parser of SQL does not know."""

from __future__ import annotations

import re
from collections.abc import Collection

from lakeproof.commit.change import Command
from lakeproof.errors import InvalidInput
from lakeproof.sql.job_reading.table_names import known_tables, table_key
from lakeproof.sql.job_statements import JobStatement
from lakeproof.sql.lexer import tokens_of
from lakeproof.sql.parser import parse_statement
from lakeproof.sql.statements import ProcedureCall


def escape_quotes(text: str) -> str:
    """The text with a doubled quote inside a string written as an escaped one, which is what Spark takes it for."""
    made, at = "", 0
    for token in tokens_of(text):
        raw = text[token.start : token.end]
        if token.kind == "string" and raw[0] in "'\"":
            raw = raw[0] + _escaped(raw[1:-1], raw[0]) + raw[0]
        made += text[at : token.start] + raw
        at = token.end
    return made + text[at:]


def _escaped(inside: str, quote: str) -> str:
    return re.sub(rf"\\.|{quote * 2}", lambda m: m[0].replace(quote * 2, f"\\{quote}"), inside, flags=re.DOTALL)


def compaction_of(text: str, tables: Collection[str]) -> JobStatement:
    """CALL of `rewrite_data_files`; a compaction of a part is taken for one of the whole table, and that is said."""
    made = parse_statement(text)
    if not isinstance(made, ProcedureCall) or made.procedure.rpartition(".")[2] != "rewrite_data_files":
        raise InvalidInput("Of procedures only rewrite_data_files is understood", hint="leave the others out")
    named = {one.name or ("table", "strategy", "sort_order")[min(i, 2)]: one for i, one in enumerate(made.arguments)}
    if "table" not in named:
        raise InvalidInput("rewrite_data_files needs a table")
    name = str(named["table"].value)
    key = table_key(name.replace("`", "").lower(), tables)
    if key is None:
        raise InvalidInput(f"The table {name!r} is not created in the set-up", hint=known_tables(tables))
    note = "the compaction's WHERE is not looked at: it may rewrite any row"
    return JobStatement(Command.REWRITE, key, text.strip(), notes=(note,) if "where" in named else ())
