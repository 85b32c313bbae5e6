"""Databricks from outside: start a run of a job there and learn how it ended. Needs the extra ``databricks``."""
