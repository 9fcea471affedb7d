"""Explores any model of processes over one shared value, and has never heard of tables."""
