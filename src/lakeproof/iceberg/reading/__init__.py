"""From a snapshot to the files of a scan: manifests decoded, kept and pruned."""
