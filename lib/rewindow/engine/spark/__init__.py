"""Scheduling on Spark: sessions, sources, shuffles, cluster code. With `tables.governed`, the only importer of pyspark."""
