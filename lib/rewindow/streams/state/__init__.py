"""Stores of each kind, in memory or spilling to local disk, and their rollback after a record at which a node failed."""
