"""Serialization: key bytes, canonical JSON, typed columns and the types that flow through a topology."""
