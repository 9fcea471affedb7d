"""Replays a scenario or a trace on another implementation."""
