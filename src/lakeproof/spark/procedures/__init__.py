"""CALL system.…: procedures on managed tables."""
