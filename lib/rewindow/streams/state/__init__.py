"""Stores of each kind: in memory, spilling to local disk, and restored after a failed record."""
