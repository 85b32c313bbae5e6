"""Scheduling on Spark: sessions, sources, shuffles, cluster code. Besides it, only `tables.governed` and `app` use pyspark."""
