"""Broken statements through `lake.sql`, and damaged files under a SELECT on Spark: one sentence each.

`LAKEPROOF_SPARK_TEXTS` says how many statements (100 by default).
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from broken_texts import Corpus, Reader, fallen
from damage import damaged

from lakeproof.errors import LakeproofError
from lakeproof.spark.lake import Lake, connect

pytestmark = [pytest.mark.spark, pytest.mark.slow]
TEXTS = int(os.environ.get("LAKEPROOF_SPARK_TEXTS", "100"))
SEED = int(os.environ.get("LAKEPROOF_TEXTS_SEED", "20"))
FORBIDDEN = ("clear cache", "shutdown", "set ", "add jar", "add file", "add archive", "reset", "use ", "{")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("damaged")
    made = connect(catalog=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "w"))
    made.sql("create table t (id int, v int, s string) using iceberg")
    made.sql("insert into t values (1, 2, 'x'), (2, 3, 'y')")
    return made


def harmless(text: str) -> bool:
    """Whether the statement changes nothing but tables: not the session, nor files of the machine."""
    low = text.lower()
    return not any(word in low for word in FORBIDDEN) and "location" not in low and "path" not in low


def test_a_broken_statement_through_spark_ends_in_a_sentence(lake: Lake) -> None:
    corpus, chance, found, tried = Corpus(), Random(SEED), [], 0
    reader = Reader("statement", "lake.sql", lake.sql)
    while tried < TEXTS:
        text = corpus.broken("statement", chance)
        if not harmless(text) or len(text) > 1500:
            continue
        tried += 1
        if (fall := fallen(reader, text)) is not None:
            found.append(fall)
    assert found == []


@pytest.mark.parametrize("number", range(8))
def test_a_damaged_data_file_under_a_select_names_itself_or_is_read(lake: Lake, number: int) -> None:
    name = f"d{number}"
    lake.sql(f"create table {name} (id int, v int) using iceberg")
    lake.sql(f"insert into {name} select /*+ coalesce(1) */ cast(id as int), 0 from range(100)")
    path = Path(lake.table(name).plan().files[0].path.removeprefix("file://"))
    sound = path.read_bytes()
    _, data = damaged(sound, path.name, Random(number), [b"not a Parquet file"])
    path.write_bytes(data)
    refusal = ""
    try:
        rows = lake.collect(lake.sql(f"select id, v from {name}"))
    except LakeproofError as error:
        refusal = str(error)
    assert path.name in refusal if refusal else len(rows) == 100
    path.write_bytes(sound)
    assert len(lake.collect(lake.sql(f"select id, v from {name}"))) == 100
