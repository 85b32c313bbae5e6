"""The links on the page of a task instance."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink


class ReportLink(BaseOperatorLink):
    """The report that the task wrote."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the report's address; empty if the task wrote no report. The worker calls this method."""
        del ti_key
        return str(getattr(operator, "report", None) or "")


class DatabricksRunLink(BaseOperatorLink):
    """The page of the job run in the Databricks workspace."""

    name = "Databricks run"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the address of the job run of this try; empty before the try has one. The worker calls this method."""
        del ti_key
        return str(getattr(operator, "run_url", None) or "")
