"""A task's command tells OpenLineage where Airflow's provider would, as a child of the task's run."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rewindow.airflow.operators import openlineage_env
from tests.airflow.forked import Airflow
from tests.airflow.home import environment

TI = SimpleNamespace(dag_id="daily_orders", task_id="run", run_id="manual__1", try_number=1, map_index=-1)


def env(options: dict[str, str] | None = None, ti: Any = TI, **environ: str) -> dict[str, str]:
    return openlineage_env(ti, lambda name: (options or {}).get(name, ""), environ)


def test_the_task_is_the_parent_and_the_dag_run_the_root():
    given = env()
    namespace, job, run = given["OPENLINEAGE_PARENT_ID"].split("/")
    assert (namespace, job) == ("default", "daily_orders.run")
    assert uuid.UUID(run)
    assert given["OPENLINEAGE_ROOT_PARENT_ID"].startswith("default/daily_orders/")
    assert env() == given, "a retry that finds the running command would name the same parent"
    retried = SimpleNamespace(**{**vars(TI), "try_number": 2})
    assert env(ti=retried)["OPENLINEAGE_PARENT_ID"] != given["OPENLINEAGE_PARENT_ID"]
    assert env(ti=retried)["OPENLINEAGE_ROOT_PARENT_ID"] == given["OPENLINEAGE_ROOT_PARENT_ID"]


def test_the_section_of_the_provider_configures_the_command():
    transport = '{"type": "http", "url": "http://marquez:5000"}'
    given = env({"transport": transport, "namespace": "prod", "config_path": "/etc/openlineage.yml"})
    assert given["OPENLINEAGE__TRANSPORT"] == transport
    assert given["OPENLINEAGE_CONFIG"] == "/etc/openlineage.yml"
    assert given["OPENLINEAGE_NAMESPACE"] == "prod"
    assert given["OPENLINEAGE_PARENT_ID"].startswith("prod/daily_orders.run/")
    assert env({"disabled": "True"})["OPENLINEAGE_DISABLED"] == "true"
    assert env(OPENLINEAGE_NAMESPACE="stage")["OPENLINEAGE_PARENT_ID"].startswith("stage/")
    assert env(ti=None) == {}


def test_the_ids_are_those_of_the_provider_if_it_is_installed(monkeypatch: pytest.MonkeyPatch):
    macros = ModuleType("macros")
    for name, found in (("lineage_parent_id", "ns/task/1"), ("lineage_root_parent_id", "ns/dag/2")):
        setattr(macros, name, lambda _ti, found=found: found)
    plugins = ModuleType("plugins")
    plugins.macros = macros
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.plugins", plugins)
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.plugins.macros", macros)
    given = env()
    assert (given["OPENLINEAGE_PARENT_ID"], given["OPENLINEAGE_ROOT_PARENT_ID"]) == ("ns/task/1", "ns/dag/2")


CODE = """\
import json, sys
from types import SimpleNamespace
from rewindow.airflow.operators import RewindowOperator

command = "import json, os; print(json.dumps({'OPENLINEAGE': {k: v for k, v in os.environ.items() if 'OPENLINEAGE' in k}}))"
task = RewindowOperator(
    task_id="run", job="daily_orders", env={"OPENLINEAGE_NAMESPACE": "mine"}, executable=[sys.executable, "-c", command]
)
ti = SimpleNamespace(dag_id="d", task_id="run", run_id="r", try_number=1, map_index=-1)
print(json.dumps(task.execute({"ti": ti, "data_interval_end": None})["OPENLINEAGE"]))
"""


@pytest.mark.slow
def test_the_operator_passes_them_and_its_own_variables_win(airflow: Airflow, tmp_path: Path):
    transport = '{"type": "console"}'
    there = {**environment(tmp_path, tmp_path), "AIRFLOW__OPENLINEAGE__TRANSPORT": transport}
    given = airflow.answers(CODE, there)
    assert given["OPENLINEAGE__TRANSPORT"] == transport
    assert given["OPENLINEAGE_PARENT_ID"].startswith("default/d.run/")
    assert given["OPENLINEAGE_NAMESPACE"] == "mine"
