"""What a team asks of its DAGs: prefixes, tags, access, time limits, callbacks, approvers, and jobs inside of its own DAG."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.airflow.forked import Airflow
from tests.airflow.home import ROOT, environment, play
from tests.airflow.shop import make_shop

pytestmark = pytest.mark.slow

CONVENTIONS = """
import json
from datetime import timedelta
from airflow.sdk import AsyncCallback, DeadlineAlert, DeadlineReference
from rewindow.airflow.dags import make_dags

def told(context): ...

late = DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, timedelta(hours=2), AsyncCallback("ops.page"))
dags = make_dags(
    ROOT,
    jobs=["daily_orders"],
    prefix="test_",
    tags=["shop", "gold"],
    access_control={"Viewer": {"can_read"}},
    dagrun_timeout=timedelta(hours=3),
    deadline=late,
    on_failure_callback=told,
    approvers=["ann"],
)
print(json.dumps({name: {
    "id": dag.dag_id,
    "tags": sorted(dag.tags),
    "access": bool(dag.access_control),
    "timeout": dag.dagrun_timeout and dag.dagrun_timeout.total_seconds(),
    "deadline": bool(dag.deadline),
    "failed": dag.on_failure_callback is told,
    "doc": dag.doc_md,
    "limits": {task.task_id: task.execution_timeout and task.execution_timeout.total_seconds() for task in dag.tasks},
    "answer_within": [task.response_timeout for task in dag.tasks if task.task_id == "promote"],
    "approvers": [user for task in dag.tasks if task.task_id == "promote" for user in task.assigned_users],
} for name, dag in dags.items()}))
"""
OWN_DAG = """\
from pathlib import Path

import pendulum
from airflow.sdk import DAG, task

from rewindow.airflow.job_tasks import job_group
from rewindow.airflow.params import RUN

with DAG("nightly", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False, params=RUN):

    @task
    def extract(): ...

    @task
    def publish(): ...

    extract() >> job_group("daily_orders", Path(__file__).parent.parent, group_id="orders") >> publish()
"""


@pytest.fixture(scope="module")
def quick_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shop(tmp_path_factory.mktemp("shop"), needs_jvm=False)


def test_a_teams_conventions_hold_for_all_dags_and_time_limits_spare_the_approval(
    airflow: Airflow, quick_shop: Path
) -> None:
    code = CONVENTIONS.replace("ROOT", repr(str(quick_shop)))
    found = airflow.answers(code, environment(quick_shop, ROOT / "dags"))
    assert sorted(found) == ["test_daily_orders", "test_daily_orders__backfill"]
    run, backfill = (found[name] for name in sorted(found))
    for name, dag in found.items():
        assert dag["id"] == name
        assert {"shop", "gold", "rewindow"} <= set(dag["tags"])
        assert dag["access"]
        assert dag["failed"]
    assert (run["timeout"], run["deadline"]) == (3 * 3600, True)
    assert (backfill["timeout"], backfill["deadline"]) == (None, False)
    assert "`test_daily_orders__backfill`" in run["doc"]
    assert backfill["approvers"] == [{"id": "ann", "name": "ann"}]
    assert run["limits"] == dict.fromkeys(["land", "run"], 24 * 3600)
    assert backfill["limits"] == dict.fromkeys(["backfill", "verify", "promote"], 24 * 3600)
    assert backfill["answer_within"] == [None]  # nobody has to approve within a day


LIMITS = """
import json
from datetime import timedelta
from airflow.sdk import DAG
from rewindow.airflow.dags import make_dags
from rewindow.airflow.job_tasks import job_group

def limits(dag):
    return sorted({task.execution_timeout.total_seconds() for task in dag.tasks if task.execution_timeout})

hour = timedelta(hours=1)
with DAG("own", schedule=None) as own:
    job_group("daily_orders", ROOT, execution_timeout=hour)
made = [make_dags(ROOT, **given)["daily_orders"] for given in (
    {"execution_timeout": hour}, {"execution_timeout": None}, {"default_args": {"execution_timeout": hour}}
)]
print(json.dumps([limits(dag) for dag in (own, *made)]))
"""


def test_a_team_chooses_how_long_a_command_may_take(airflow: Airflow, quick_shop: Path) -> None:
    found = airflow.answers(LIMITS.replace("ROOT", repr(str(quick_shop))), environment(quick_shop, ROOT / "dags"))
    assert found == [[3600], [3600], [], [3600]]


@pytest.mark.airflow
def test_a_job_runs_inside_of_a_teams_own_dag(airflow_home: Path, quick_shop: Path) -> None:
    (quick_shop / "dags/nightly.py").write_text(OWN_DAG)
    env = environment(airflow_home, quick_shop / "dags")
    (done,) = play(env, {"dag": "nightly", "date": "2026-01-04"})
    states = {name: task["state"] for name, task in done["tasks"].items()}
    assert states == dict.fromkeys(["extract", "orders.land", "orders.run", "publish"], "success")
    (event,) = done["events"]
    assert event["extra"]["epochs"] == [1, 3]


TEMPLATED = """
import json
from types import SimpleNamespace
from airflow.sdk import DAG
from rewindow.airflow.operators import RewindowOperator

with DAG("templated", schedule=None):
    task = RewindowOperator(
        task_id="run", job="{{ j }}", by="{{ b }}", branch="{{ r }}", project="{{ p }}", target="{{ t }}",
        executable=["{{ e }}"], env={"A": "{{ a }}"}, folder="{{ f }}",
    )
words = {"j": "orders", "b": BY, "r": "fix", "p": "/opt/shop", "t": "prod", "e": "/bin/rw", "a": "1", "f": "/opt/out"}
task.render_template_fields(words)
flags = {"accept_changes": True, "replan": True, "takeover": True}
context = {"params": {"through": "2026-01-02", **flags}, "dag": SimpleNamespace(params=DECLARED)}
try:
    print(json.dumps([task.command(context), task.env, task.folder]))
except Exception as error:
    print(json.dumps(str(error)))
"""


def test_everything_an_operator_passes_may_be_templated_and_its_params_become_options(airflow: Airflow, tmp_path: Path):
    there = environment(tmp_path, tmp_path)
    code = TEMPLATED.replace("DECLARED", "{'through': None, **flags}")
    line, env, folder = airflow.answers(code.replace("BY", "'through'"), there)
    bounds = ["--through", "2026-01-02", "--branch", "fix", "--accept-changes", "--replan", "--takeover"]
    where = ["--project", "/opt/shop", "--target", "prod", "--json", "--log-format", "text"]
    assert line == ["/bin/rw", "run", "orders", *bounds, *where]
    assert (env, folder) == ({"A": "1"}, "/opt/out")
    wrong = airflow.answers(code.replace("BY", "'tomorrow'"), there)
    assert "by='tomorrow'" in wrong
    undeclared = TEMPLATED.replace("DECLARED", "{}").replace("BY", "'through'")
    line, _, _ = airflow.answers(undeclared, there)
    assert line == ["/bin/rw", "run", "orders", "--branch", "fix", *where]  # nobody has checked values of other names
