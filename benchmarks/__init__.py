"""What it costs: figures of this project beside those of others, measured in the same run."""
