"""One file per area, each with `run(full) -> Result`."""
