"""The adapter of governed tables. Ledger, journal and publishing go through Spark, because files may not be opened directly."""
