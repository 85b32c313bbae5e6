"""Decide what runs, in which order, and which results count. All I/O goes through protocols."""
