"""Provenance: replay tasks in memory, and note which records and punctuations each row was made from."""
