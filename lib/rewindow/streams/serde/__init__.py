"""Serialization: key bytes, canonical JSON, typed columns, and the types of keys and values in a topology."""
