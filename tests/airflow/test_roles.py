"""What the roles VIEWER and USER of a real Airflow may do through rewindow's DAGs, and what they may not.

A USER may trigger DAGs, mark and clear their tasks, and edit what tasks have stored. None of this publishes a branch without its
approvers, or reaches a command as an option.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.home import environment, migrate
from tests.airflow.shop import make_shop
from tests.airflow.test_dags import rewindow, tables

if TYPE_CHECKING:
    import httpx

    from tests.airflow.live import Live

pytestmark = pytest.mark.airflow

SECONDS = 1500
JOB, BACKFILL, TIDY, RUN = "daily_orders", "daily_orders__backfill", "tidy", "fix"
USERS = {"anna": "user", "ursula": "user", "victor": "viewer"}
DAGS = """\
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rewindow.airflow.dags import make_dags

project, ended = Path(__file__).parent.parent, datetime(2026, 11, 10, tzinfo=UTC)
soon = {"retry_delay": timedelta(seconds=2)}
globals().update(make_dags(project, end_date=ended, default_args=soon, approvers=["anna"], maintenance="tidy"))
"""
PROMOTE = f"/dags/{BACKFILL}/dagRuns/{RUN}/taskInstances/promote"
HOSTILE = {
    JOB: [
        *(
            {"through": given}
            for given in ("2026-01-03\n", "2026-01-03\x00", "\u0662\u0660\u0662\u0666-01-03", "--x", 5, ["1"])
        ),
        {"through": "{{ conn.lake.password }}"},
        {"takeover": "yes"},
    ],
    BACKFILL: [
        *(
            {"from": given}
            for given in ("1\n", "../x/1", "--to=3", "main/\u0663", "1 OR 1=1", f"{'a' * 300}/1", "9" * 30)
        ),
        *(
            {"from": "1", "branch": given}
            for given in ("main\n", "-x", "../../etc", "a/b", "a\u202eb", "x" * 101, "{{ x }}")
        ),
    ],
    TIDY: [
        {"action": "drop_branch", "job": JOB, "branch": "main\n"},
        *({"action": "gc", "keep": given} for given in ("1h\n", "-1h", "\u0661h")),
        {"action": "gc", "job": "../daily_orders"},
    ],
}
WRITES = [
    ("POST", f"/dags/{JOB}/dagRuns", {"logical_date": None, "conf": {}}),
    ("POST", f"/dags/{JOB}/clearTaskInstances", {"dag_run_id": RUN, "dry_run": False}),
    ("PATCH", f"/dags/{JOB}", {"is_paused": True}),
    ("PATCH", PROMOTE, {"new_state": "success"}),
    ("PATCH", f"{PROMOTE}/-1/hitlDetails", {"chosen_options": ["Approve"], "params_input": {}}),
    ("POST", f"{PROMOTE}/xcomEntries", {"key": "x", "value": "y"}),
    ("PUT", f"{PROMOTE}/state-store/x", {"value": "y"}),
    ("DELETE", f"/dags/{BACKFILL}/dagRuns/{RUN}", None),
    ("GET", "/connections", None),
    ("GET", "/variables", None),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with a published table, whose code was fixed since."""
    root = make_shop(tmp_path_factory.mktemp("roles"), needs_jvm=False)
    (root / "dags/shop.py").write_text(DAGS)
    rewindow(root, "land", "orders", "--until", "2026-01-05")
    rewindow(root, "run", JOB)
    code = root / "jobs/daily_orders.py"
    fixed = 'builder.stream("orders").filter(lambda key, value: key != "c")'
    code.write_text(code.read_text().replace('builder.stream("orders")', fixed))
    return root


@pytest.fixture(scope="module")
def live(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return an Airflow in which a USER has triggered a backfill, and the task `promote` asks."""
    from tests.airflow.live import Live  # needs Airflow's dependencies

    env = environment(tmp_path_factory.mktemp("airflow"), shop / "dags")
    migrate(env)
    with Live(env, USERS) as live:
        live.until(lambda: len(live.get("/dags")["dags"]) == 5, SECONDS, "the five DAGs")
        live.patch(f"/dags/{BACKFILL}", {"is_paused": False})
        body = {"logical_date": None, "dag_run_id": RUN, "conf": {"from": "1"}}
        with live.client("ursula") as ursula:
            assert ursula.post(f"/dags/{BACKFILL}/dagRuns", json=body).is_success
        asked(live)
        yield live


def asked(live: Live, after: int = 0) -> int:
    """Wait until the task `promote` waits for an answer in a try after this one, and return the number of the try."""

    def waiting() -> int:
        found = live.tasks(BACKFILL, RUN)
        assert "failed" not in {task["state"] for task in found.values()}, found
        state, attempt = found["promote"]["state"], found["promote"]["try_number"]
        # The scheduler must have seen the state too: it treats an earlier answer or mark as a failure.
        seen = rf"executor event with state success .*task_id='promote'.*try_number={attempt}"
        is_seen = re.search(seen, live.log.read_text(errors="replace"))
        return int(attempt) if state == "awaiting_input" and attempt > after and is_seen else 0

    attempt: int = live.until(waiting, SECONDS, "the question")
    return attempt


def ended(live: Live) -> None:
    live.until(lambda: live.get(f"/dags/{BACKFILL}/dagRuns/{RUN}")["state"] == "success", SECONDS, "the run's end")


def answer(client: httpx.Client, choice: str = "Approve") -> int:
    there = f"{PROMOTE}/-1/hitlDetails"
    return client.patch(there, json={"chosen_options": [choice], "params_input": {}}).status_code


def clear(client: httpx.Client, *names: str) -> None:
    what = {"task_ids": names, "include_downstream": False, "only_failed": False, "dry_run": False, "dag_run_id": RUN}
    assert client.post(f"/dags/{BACKFILL}/clearTaskInstances", json=what).is_success


def test_a_viewer_may_change_nothing_and_read_no_credentials(live: Live) -> None:
    with live.client("victor") as victor:
        assert victor.get(f"{PROMOTE}/-1/hitlDetails").is_success  # may read what the DAGs show
        for method, path, body in WRITES:
            code = victor.request(method, path, json=body).status_code
            assert code == 403, (method, path, code)


@pytest.mark.parametrize(("dag", "conf"), [(dag, conf) for dag, confs in HOSTILE.items() for conf in confs])
def test_hostile_params_are_refused_before_a_run_is_created(live: Live, dag: str, conf: dict[str, Any]) -> None:
    with live.client("ursula") as ursula:
        refused = ursula.post(f"/dags/{dag}/dagRuns", json={"logical_date": None, "conf": conf})
    assert refused.status_code == 400, refused.text


def test_only_an_approver_publishes_whatever_else_a_user_marks_clears_and_edits(live: Live, shop: Path) -> None:
    before = tables(shop, "shop/daily_orders")
    with live.client("ursula") as ursula, live.client("anna") as anna:
        assert answer(ursula) == 403
        attempt = asked(live)
        question = live.get(f"{PROMOTE}/-1/hitlDetails")["body"]
        for task in ("backfill", "verify"):
            there = f"/dags/{BACKFILL}/dagRuns/{RUN}/taskInstances/{task}"
            for key, value in (("return_value", {"exit_code": 0, "report": "http://evil"}), ("skipmixin_key", {})):
                made = ursula.post(f"{there}/xcomEntries", json={"key": key, "value": value})
                edited = ursula.patch(f"{there}/xcomEntries/{key}", json={"value": value})
                assert made.is_success or edited.is_success  # a USER may edit results
            assert ursula.put(
                f"{there}/state-store/command", json={"value": {"pid": 1, "folder": str(shop)}}
            ).is_success
        assert ursula.patch(PROMOTE, json={"new_state": "success"}).is_success  # a USER may mark tasks
        ended(live)
        assert tables(shop, "shop/daily_orders") == before  # marking the task publishes nothing

        clear(ursula, "promote")
        attempt = asked(live, attempt)
        assert live.get(f"{PROMOTE}/-1/hitlDetails")["body"] == question, (
            "the question has nothing that a user can edit"
        )
        assert answer(ursula) == 403
        assert answer(anna, "Reject") == 200
        ended(live)
        assert live.tasks(BACKFILL, RUN)["promote"]["state"] == "skipped"

        clear(ursula, "promote")
        asked(live, attempt)
        assert tables(shop, "shop/daily_orders") == before  # a rejected branch is not published after a clear either
        assert answer(anna) == 200
        ended(live)
    assert tables(shop, "shop/daily_orders") == [row for row in before if row[0] != "c"]
    assert (shop / "data").is_dir()
