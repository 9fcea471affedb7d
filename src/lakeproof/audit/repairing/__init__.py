"""Findings → what would set them right: a plan, and the files and metadata of one commit that does it."""
