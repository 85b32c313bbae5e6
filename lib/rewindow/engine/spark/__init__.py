"""Spark places the work: sessions, sources, record execution, staged files. The only package that imports pyspark."""
