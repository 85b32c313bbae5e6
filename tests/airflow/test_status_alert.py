"""The DAG of the monitoring page checks the whole project and fails at once if something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindow.contracts.exit_codes import DIFFERENT, Next, what_next
from tests.airflow.forked import Airflow
from tests.airflow.home import environment
from tests.docs.blocks import blocks_of


def test_a_finding_is_not_retried() -> None:
    assert what_next(DIFFERENT) is Next.FAIL


@pytest.mark.slow
def test_the_dag_of_the_page_runs_status_without_retries(airflow: Airflow, tmp_path: Path) -> None:
    (block,) = [one.text for one in blocks_of("docs/guides/monitoring.md") if "RewindowOperator(" in one.text]
    named = block.replace("    RewindowOperator(", "    task = RewindowOperator(")
    asked = "import json\nprint(json.dumps({'line': task.command({}), 'retries': task.retries, 'dag': task.dag_id}))\n"
    found = airflow.answers(named + asked, environment(tmp_path, tmp_path))
    assert found["dag"] == "shop_status"
    assert found["retries"] == 0
    assert "status" in found["line"]
