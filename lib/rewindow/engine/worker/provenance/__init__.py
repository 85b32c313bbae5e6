"""Provenance: replay tasks in memory, and note from which records and punctuations each row was made."""
