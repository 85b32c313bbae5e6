"""What is true: ledgers, journal, log and output tables in Delta. The only package that imports deltalake."""
