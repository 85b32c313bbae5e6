"""Governed tables: the ledger, the journal and publishing through Spark, where files may not be touched directly."""
