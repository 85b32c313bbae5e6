"""Spark places the work: sessions, sources, the record lane, staged files. The only package that imports pyspark."""
