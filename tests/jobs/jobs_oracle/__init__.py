"""Random jobs files against a brute force that knows nothing of `jobs/` and `models/`."""
