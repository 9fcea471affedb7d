"""Settings of Apache Iceberg that a session may hold: what says how rows are written is refused, never ignored.

Those that say how rows are read and planned change no answer, and ask nothing of us.
"""

from __future__ import annotations

import re

from lakeproof.errors import InvalidInput
from lakeproof.spark.jvm.gateway import Gateway

_PREFIX = "spark.sql.iceberg."
_FOUND = re.compile(rf"{re.escape(_PREFIX)}([\w.-]+) -> ([^,)]*)")
_PROPERTY = "snapshot-property."
_INSTEAD = {
    "check-nullability": "rows are always checked",
    "merge-schema": 'say option("mergeSchema", "true") where it is meant',
    "compression-codec": "set the table's property write.parquet.compression-codec",
    "compression-level": "Spark's own level is used",
    "compression-strategy": "only ORC has one, and Spark chooses it",
    "distribution-mode": "say ALTER TABLE ... WRITE DISTRIBUTED BY, or WRITE UNORDERED",
    _PROPERTY: 'say option("snapshot-property.NAME", "...") where it is meant',
}
_DONE_ANYWAY = {"check-nullability": "true", "merge-schema": "false"}


def refuse_settings(gateway: Gateway) -> None:
    """Refuse to write under a setting that nothing here honours."""
    for name, value in _FOUND.findall(str(gateway.session.sessionState().conf().getAllConfs().toString())):
        known = _PROPERTY if name.startswith(_PROPERTY) else name
        if known in _INSTEAD and _DONE_ANYWAY.get(name) != value.strip().lower():
            raise InvalidInput(
                f"the session's setting {_PREFIX}{name} is not supported for managed tables",
                place=f"its value {value.strip()!r}",
                hint=f"unset it; {_INSTEAD[known]}",
            )
