"""The flights demo in Airflow: a DAG for each file in conf/jobs, and one that recomputes its past."""

from __future__ import annotations

from pathlib import Path

from rewindow.airflow.dags import make_dags

globals().update(make_dags(Path(__file__).parent.parent))
