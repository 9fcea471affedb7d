"""Metadata, manifest lists and manifests are written anew with one thing set right, and swapped in as one commit."""
