"""Vectorized joins: a stream with a stream, and a stream with a table."""
