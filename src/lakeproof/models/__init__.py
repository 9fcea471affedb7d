"""Protocols as state machines, a folder each: `iceberg`, `paimon`."""
