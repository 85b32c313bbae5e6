"""Start and follow runs of Databricks jobs. Needs the extra ``databricks``."""
