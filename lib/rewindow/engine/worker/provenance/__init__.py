"""Provenance: replay tasks in memory, and find out from which records and punctuations each row was made."""
