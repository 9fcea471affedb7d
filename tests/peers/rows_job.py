"""Row-level commands, and what runs in Python workers, as a job: `spark-submit rows_job.py FOLDER rows|workers`."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import lakeproof
from lakeproof.spark.lake import Lake


def rows(lake: Lake) -> None:
    """UPDATE, DELETE, MERGE and a compaction on both kinds of tables."""
    for mode in ("copy-on-write", "merge-on-read"):
        name = mode.replace("-", "_")
        modes = ", ".join(f"'write.{command}.mode'='{mode}'" for command in ("update", "delete", "merge"))
        lake.sql(f"create table {name} (id bigint, v string) using iceberg tblproperties ({modes})")
        lake.sql(f"insert into {name} select id, 'old' from range(0, 10000, 1, 4)")
        lake.sql(f"update {name} set v = 'new' where id % 3 = 0")
        lake.sql(f"delete from {name} where id >= 9000")
        lake.sql(
            f"merge into {name} t using (select id * 2 as id from range(4000, 5000)) s on t.id = s.id "
            "when matched then update set v = 'merged' when not matched then insert (id, v) values (s.id, 'added')"
        )
        lake.sql(f"call system.rewrite_data_files('{name}')")
        found = {row.v: row.n for row in lake.sql(f"select v, count(*) as n from {name} group by v").collect()}
        assert found == {"old": 5666, "new": 2834, "merged": 500, "added": 500}, found


def workers(lake: Lake) -> None:
    """Arrays are written, and strings put into buckets, by Python."""
    lake.sql("create table lists (id bigint, tags array<string>) using iceberg partitioned by (bucket(4, id))")
    lake.sql("insert into lists select id, array('a', cast(id as string)) from range(0, 1000, 1, 4)")
    assert lake.sql("select sum(size(tags)) from lists").collect()[0][0] == 2000
    lake.sql("create table names (name string) using iceberg partitioned by (bucket(4, name))")
    lake.sql("insert into names select concat('n', id) from range(0, 1000, 1, 4)")
    assert lake.sql("select count(name) from names where name = 'n17'").collect()[0][0] == 1


def main(folder: str, what: str) -> None:
    """The statements of one kind."""
    spark = SparkSession.builder.appName(what).getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    lake = lakeproof.connect(spark, catalog=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/lake")
    {"rows": rows, "workers": workers}[what](lake)
    print(f"{what} done")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
