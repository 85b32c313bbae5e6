"""Metadata of the Airflow provider (entry point ``apache_airflow_provider``)."""

from __future__ import annotations

from importlib import metadata
from typing import Any

NAME = "rewindow"


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata."""
    return {
        "package-name": NAME,
        "name": NAME,
        "description": "Deterministic replay of event logs in Delta tables, as scheduled batch jobs.",
        "versions": [metadata.version(NAME)],
        "integrations": [{"integration-name": NAME, "tags": ["software"]}],
        "operators": [
            {
                "integration-name": NAME,
                "python-modules": [f"rewindow.airflow.{name}" for name in ("operators", "job_tasks", "job_runs")],
            }
        ],
        "sensors": [{"integration-name": NAME, "python-modules": ["rewindow.airflow.sensors"]}],
        "hooks": [{"integration-name": NAME, "python-modules": ["rewindow.airflow.hooks"]}],
        "extra-links": ["rewindow.airflow.links.DatabricksRunLink", "rewindow.airflow.links.ReportLink"],
        "triggers": [
            {"integration-name": NAME, "python-modules": ["rewindow.airflow.triggers", "rewindow.airflow.job_runs"]}
        ],
    }
