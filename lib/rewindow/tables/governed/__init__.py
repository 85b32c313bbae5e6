"""The adapter of governed tables: ledger, journal and publishing through Spark, where files may not be opened directly."""
