"""The maintenance DAG: what an operator needs at night without a shell, and params that do not fit together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.airflow.forked import Airflow
from tests.airflow.home import ROOT, environment, play
from tests.airflow.shop import make_shop
from tests.airflow.test_dags import rewindow

pytestmark = pytest.mark.slow

TRIED = """
import json
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError
from rewindow.airflow.dags import make_dags
from rewindow.airflow.exit_exceptions import raise_for_exit

def tried(conf):
    dag = make_dags(ROOT, prefix="night_", maintenance="shop_maintenance")["night_shop_maintenance"]
    (task,) = dag.tasks
    try:
        dag.params.update(conf)
        context = {"params": dag.params.validate()}
    except ParamValidationError as error:
        return "refused by the trigger"
    task.render_template_fields(context)
    try:
        task._pre_execute_hook(context)
    except AirflowFailException as error:
        return str(error)
    line = task.command(context)
    return [word for word in line[4:line.index("--project")]]

def advised():
    dag = make_dags(ROOT, maintenance="shop_maintenance")["shop_maintenance"]
    try:
        raise_for_exit({"dag": dag, "params": dag.params}, 2, "use `rewindow backfill j --from 1 --branch NAME` or --keep 1d")
    except AirflowFailException as error:
        return str(error)

print(json.dumps([*(tried(conf) for conf in CONFS), advised()]))
"""
REFUSED = "refused by the trigger"
CASES: list[tuple[dict[str, Any], Any]] = [
    ({"action": "gc"}, ["gc"]),
    ({"action": "gc", "job": "daily_orders", "keep": "12h"}, ["gc", "daily_orders", "--kind=job", "--keep=12h"]),
    (
        {"action": "gc", "feed": "orders", "dry_run": True},
        ["gc", "orders", "--kind=feed", "--dry-run"],
    ),
    ({"action": "drop_branch", "job": "daily_orders", "branch": "fix"}, ["branch", "drop", "daily_orders", "fix"]),
    ({}, REFUSED),
    ({"action": "drop"}, REFUSED),
    ({"action": "gc", "job": "dayly_orders"}, REFUSED),
    ({"action": "gc", "feed": "daily_orders"}, REFUSED),
    ({"action": "gc", "keep": "a month"}, REFUSED),
    ({"action": "gc", "keep": "-1d"}, REFUSED),
    ({"action": "drop_branch", "job": "daily_orders", "branch": "--all"}, REFUSED),
    (
        {"action": "gc", "job": "daily_orders", "feed": "orders"},
        "action gc: choose a job or a feed, or neither to clean up all of them",
    ),
    ({"action": "gc", "branch": "fix"}, "action gc has no use for branch: leave it empty"),
    ({"action": "drop_branch", "branch": "fix"}, "action drop_branch: it needs the params job and branch"),
    (
        {"action": "drop_branch", "job": "daily_orders", "branch": "fix", "dry_run": True},
        "action drop_branch has no use for dry_run: leave it empty",
    ),
    (
        {"action": "drop_branch", "job": "daily_orders", "branch": "main"},
        "branch main holds the published tables and cannot be dropped: name another one",
    ),
]


def test_the_params_of_maintenance_become_a_command_or_are_refused_with_the_fix(
    airflow: Airflow, tmp_path: Path
) -> None:
    shop = make_shop(tmp_path, needs_jvm=False)
    code = TRIED.replace("ROOT", repr(str(shop))).replace("CONFS", repr([conf for conf, _ in CASES]))
    found = airflow.answers(code, environment(tmp_path, ROOT / "dags"))
    advice = found.pop()
    for (conf, expected), got in zip(CASES, found, strict=True):
        assert got == expected, conf
    assert "keep" in advice.splitlines()[1]
    assert "__backfill" not in advice, "no job is meant"


@pytest.mark.airflow
def test_an_operator_drops_a_branch_and_cleans_up_without_a_shell(airflow_home: Path, tmp_path: Path) -> None:
    shop = make_shop(tmp_path, needs_jvm=False)
    file = shop / "dags/shop.py"
    file.write_text(file.read_text().replace("parent.parent)", "parent.parent, maintenance='shop_maintenance')"))
    rewindow(shop, "run", "daily_orders", "--land")
    rewindow(shop, "backfill", "daily_orders", "--from", "1", "--branch", "fix")

    def maintain(**conf: object) -> dict[str, object]:
        return {"dag": "shop_maintenance", "conf": conf}

    tried, dropped, slip, cleaned = play(
        environment(airflow_home, shop / "dags"),
        maintain(action="gc", dry_run=True, keep="0s"),
        maintain(action="drop_branch", job="daily_orders", branch="fix"),
        maintain(action="drop_branch", job="daily_orders", branch="fixx"),
        maintain(action="gc", keep="0s"),
    )
    assert [one["state"] for one in (tried, dropped, slip, cleaned)] == ["success", "success", "failed", "success"]
    assert slip["tasks"]["maintain"]["tries"] == 1, "no retry makes such a branch"
    standing = {one["branch"]: one["standing"] for one in rewindow(shop, "branch", "list", "daily_orders")["branches"]}
    assert standing == {"main": "open", "fix": "dropped"}
