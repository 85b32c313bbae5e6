"""Decisions: what runs, what is true and in what order. All I/O goes through protocols."""
