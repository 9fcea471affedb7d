"""One file, two spellings: the manifest's own string, and the one that Spark's Hadoop file systems understand."""

from __future__ import annotations

from urllib.parse import unquote

# Hadoop reads S3 and its kin under another scheme than Iceberg's FileIO.
SCHEMES = {"s3://": "s3a://", "gcs://": "gs://"}


def for_spark(path: str) -> str:
    """The manifest's path as Spark opens it."""
    for ours, hadoops in SCHEMES.items():
        if path.startswith(ours):
            return hadoops + path.removeprefix(ours)
    return path


def from_spark(uri: str, location: str) -> str:
    """A URI that Spark printed as the manifest is to spell it, in the way the table's location is spelled.

    Spark prints `file:/x` or `file:///x` with percent signs for special characters; a manifest holds the raw string.
    """
    raw = unquote(uri)
    if raw.startswith("file:"):
        path = "/" + raw.removeprefix("file:").lstrip("/")
        return f"file://{path}" if location.startswith("file:") else path
    for ours, hadoops in SCHEMES.items():
        if location.startswith(ours) and raw.startswith(hadoops):
            return ours + raw.removeprefix(hadoops)
    return raw
