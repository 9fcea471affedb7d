"""The prompt of `lakeproof sql`: history, several lines, completion; Ctrl-C cancels the statement, not the program."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]
from rich.cells import cell_len
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from lakeproof.cli.output import defect
from lakeproof.errors import LakeproofError, hide_secrets
from lakeproof.iceberg.tables.tables import list_namespaces, list_tables
from lakeproof.spark.lake import Lake
from lakeproof.spark.statements.results import Result, cancellable, run_for_result
from lakeproof.sql import split

KEYWORDS = tuple(
    "select from where group by order by limit insert into overwrite values create table using iceberg options "  # noqa: SIM905
    "partitioned tblproperties alter add column drop describe show tables partitions explain call system as of "
    "update delete merge version timestamp branch tag".split()
)
SHOWN_ROWS = 200
LEAST_WIDTH = 14
WORDS_OF_EXIT = ("exit", "quit", "\\q")
WORDS_OF_HELP = ("help", "\\h", "?")
HELP = "End a statement with `;`. Ctrl-C cancels a running one, Ctrl-D leaves. `help` tells more, `exit` leaves too."
MORE_HELP = """show tables;                                    the tables of this namespace
describe table extended t;                      columns, partitions, properties of one
select * from t version as of 123;              the rows of an older snapshot
select * from `t$snapshots`;                    the snapshots of a table
explain select * from t where id = 1;           what a query asks of the table, and which files it reads
call system.rewrite_data_files('t');            compaction; other procedures stand in docs/reference/sql.md
Tab completes tables, columns and keywords."""


def prompt(lake: Lake, session: PromptSession[str] | None = None, console: Console | None = None) -> int:
    """Ask for statements until the user leaves; 0 always, because every mistake was answered already."""
    console = console or Console()
    asking = session or new_session(lake, kept_history())
    console.print(HELP, style="dim")
    while True:
        try:
            # A stray exception of somebody else's callback is logged; by default it would wait for a key, for ever
            # where there is no terminal.
            text = asking.prompt("sql> ", prompt_continuation="...> ", set_exception_handler=False)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return 0
        if text.strip().rstrip(";").lower() in WORDS_OF_EXIT:
            return 0
        if text.strip().rstrip(";").lower() in WORDS_OF_HELP:
            console.print(MORE_HELP, markup=False, highlight=False)
            continue
        answer_input(lake, text, console)


def answer_input(lake: Lake, text: str, console: Console) -> None:
    """Run the statements of an input and draw what they gave."""
    try:
        for piece in split(text):
            started = time.monotonic()
            result = cancellable(lake, partial(run_for_result, lake, piece.text, at_most=SHOWN_ROWS))
            if result is None:
                console.print("cancelled", style="yellow")
                return
            draw_result(console, result)
            console.print(f"{_told(result)}, {time.monotonic() - started:.1f} s", style="dim")
    except LakeproofError as error:
        console.print(f"{type(error).__name__}: {error}", style="red", markup=False, highlight=False)
    except Exception as error:  # nobody loses a session, with its views and settings, over a mistake of ours
        console.print(f"Defect: {defect(error)}", style="red", markup=False, highlight=False)


def _told(result: Result) -> str:
    """How many rows there were to see; a command has none, and is just done."""
    if not result.columns:
        return "done"
    count = len(result.rows)
    return f"more than {count} rows" if result.cut else f"{count} row{'' if count == 1 else 's'}"


def draw_result(out: Console, result: Result) -> None:
    """Draw the result; a single long text, such as a plan, is printed as it is."""
    if not result.columns:
        return
    if result.columns in (("plan",), ("createtab_stmt",)):
        for row in result.rows:
            out.print(row[0], markup=False, highlight=False, soft_wrap=True)
        return
    cells = [[_cell(value) for value in row] for row in result.rows]
    widths = [
        max([cell_len(name), *(cell_len(line) for row in cells for line in row[at].plain.split("\n"))])
        for at, name in enumerate(result.columns)
    ]
    if _fits(widths, out.width):
        table = Table()
        for name, is_number in zip(result.columns, result.numbers, strict=True):
            table.add_column(Text(name), justify="right" if is_number else "left")
        for cell in cells:
            table.add_row(*cell)
        out.print(table)
    else:
        _draw_records(out, result.columns, cells)
    if result.cut:
        out.print(f"… more than {SHOWN_ROWS} rows; --json prints all", style="dim")


def _fits(widths: Sequence[int], width: int) -> bool:
    """Whether columns of these widths can be read side by side: those that must be folded keep some characters each."""
    left = width - 3 * len(widths) - 1
    for number, each in enumerate(sorted(widths)):
        share = left // (len(widths) - number)
        if each > share:
            return share >= LEAST_WIDTH
        left -= each
    return True


def _draw_records(out: Console, names: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    """Rows one below the other, each column on a line of its own: for rows that are too wide to stand side by side."""
    for number, row in enumerate(rows, 1):
        out.print(Rule(f"row {number}", align="left", style="dim"))
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, cell in zip(names, row, strict=True):
            table.add_row(Text(name), cell)
        out.print(table)


def _cell(value: Any) -> Text:
    """A value as it is read best; a null is told apart from an empty string and from the word."""
    if value is None:
        return Text("NULL", style="dim italic")
    if isinstance(value, bool):
        return Text(str(value).lower())
    return Text(json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value))


def new_session(lake: Lake, history: History, **more: Any) -> PromptSession[str]:
    """A prompt whose Enter ends a statement that has its semicolon, and otherwise begins a new line."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        text = event.current_buffer.text.strip()
        if not text or text.endswith(";") or text.lower() in (*WORDS_OF_EXIT, *WORDS_OF_HELP):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    return PromptSession(
        history=history,
        multiline=True,
        key_bindings=keys,
        completer=NameCompleter(lake),
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
        **more,
    )


class KeptHistory(FileHistory):
    """What was typed, for this user alone, without passwords and tokens."""

    def store_string(self, string: str) -> None:
        """Keep what was typed."""
        super().store_string(hide_secrets(string))


def kept_history() -> History:
    """What was typed before, kept in the user's state folder where that can be written."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "lakeproof")
    file = folder / "sql-history"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
        if file.lstat().st_uid == os.getuid() and not file.is_symlink():
            file.chmod(0o600)  # older versions left it for all to read
        return KeptHistory(str(file))
    except OSError:
        return InMemoryHistory()


class NameCompleter(Completer):
    """Completes keywords, managed tables, and the columns of the tables that the text names."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """What the word before the cursor may become."""
        word = document.get_word_before_cursor()
        tables: list[str] = []
        columns: list[str] = []
        with suppress(Exception):  # while the catalog does not answer, there are the keywords
            tables = self._tables()
            columns = [name for table in tables if table in document.text for name in self.lake.table(table).columns]
        for found in dict.fromkeys([*tables, *columns, *KEYWORDS]):
            if found.lower().startswith(word.lower()):
                yield Completion(found, start_position=-len(word))

    def _tables(self) -> list[str]:
        catalog = self.lake.engine.catalog
        current = self.lake.spark.catalog.currentDatabase()
        return list(list_tables(catalog, current)) if current in list_namespaces(catalog) else []
