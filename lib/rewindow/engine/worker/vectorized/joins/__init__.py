"""Vectorized joins of two streams, of a stream with a table, and of two tables."""
