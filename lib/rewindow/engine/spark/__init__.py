"""Scheduling on Spark: sessions, sources, shuffles, cluster code. Only `tables.governed` and `app` also use pyspark."""
