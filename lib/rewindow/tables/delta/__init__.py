"""The adapter of tables as files: ledgers, journal, log and output tables. The only package that imports deltalake."""
