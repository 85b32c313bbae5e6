"""Decide which runs to make. Pure: no Spark, no Delta, no clock."""
