"""What `PromoteOperator` asks, and what it does after an answer, with real Airflow classes and commands of a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.forked import Airflow
from tests.airflow.home import environment

pytestmark = pytest.mark.slow

COUNTS = {"equal": 3, "different": 1, "only_first": 0, "only_second": 0}
PROMOTED = {"branch": "fix", "into": "main", "at": "fix/1", "is_new": True, "published": []}
PROBE = """
import json, sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from airflow.providers.standard.operators import hitl
from airflow.sdk.exceptions import TaskAwaitingInput, TaskDeferred
from rewindow.airflow.job_tasks import PromoteOperator

asked = []
hitl.upsert_hitl_detail = lambda **of: asked.append(of)
COMMAND = '''
import json, sys
code, printed = json.loads(sys.argv[1])[sys.argv[2]]
print(json.dumps(printed))
sys.exit(code)
'''

def did(commands, method, number=1, **given):
    task = PromoteOperator(
        task_id="promote", job="orders", branch="fix", assigned_users=[{"id": "ann", "name": "ann"}], retries=2,
        retry_delay=timedelta(seconds=30), execution_timeout=timedelta(hours=1), reports="none",
        project=FOLDER, folder=FOLDER, poll_s=0.02, executable=[sys.executable, "-c", COMMAND, json.dumps(commands)],
    )
    ti = SimpleNamespace(id="0", try_number=number, dag_id="d", run_id="r", task_id="promote", map_index=-1, stats_tags={})
    if method == "execute_complete":
        given["event"].update(responded_at=datetime.now(UTC), params_input={})
    try:
        return ["done", getattr(task, method)({"ti": ti, "task_instance": ti}, **given)]
    except TaskAwaitingInput as waits:
        return ["asks", waits.method_name, str(waits.timeout), asked[-1]["body"], asked[-1]["assigned_users"]]
    except TaskDeferred as waits:
        return ["waits", waits.method_name, waits.kwargs, waits.trigger.moment > datetime.now(UTC)]
    except Exception as error:
        return [type(error).__name__, str(error)]

print(json.dumps([did(commands, *of, **given) for commands, of, given in CASES], default=str))
"""


def test_it_asks_if_anything_differs_and_a_retry_after_the_answer_does_not_ask_again(
    airflow: Airflow, tmp_path: Path
) -> None:
    data = "```\n</code><script>alert(1)</script> {% raw %} \u202e"
    differs = {"diff": [1, {"orders": {**COUNTS, "first": data}}]}
    yes, no = (
        {"chosen_options": [choice], "responded_by_user": {"id": "ann", "name": "ann"}}
        for choice in ("Approve", "Reject")
    )
    good, busy = {"promote": [0, PROMOTED]}, {"promote": [75, {"error": "another attempt is live", "exit_code": 75}]}
    cases: list[tuple[Any, ...]] = [
        (differs, ("execute",), {}),
        ({"diff": [0, {"orders": {**COUNTS, "different": 0}}]}, ("execute",), {}),
        ({"diff": [0, {"orders": {**COUNTS, "different": 0}}]}, ("execute", 2), {}),
        ({"diff": [1, {"error": "torn", "exit_code": 1}]}, ("execute",), {}),
        (good, ("execute_complete",), {"event": yes}),
        (good, ("execute_complete",), {"event": no}),
        (busy, ("execute_complete",), {"event": yes}),
        (busy, ("promote",), {"event": "time has passed", "tries": 2}),
        (good, ("promote",), {"event": "time has passed", "tries": 2}),
        ({"promote": [76, {"error": "changed", "exit_code": 76}]}, ("promote",), {}),
    ]
    code = PROBE.replace("FOLDER", repr(str(tmp_path))).replace("CASES", repr(cases))
    found = airflow.answers(code, environment(tmp_path, tmp_path))
    question, equal, again, failed, approved, rejected, later, too_often, at_last, changed = found
    assert question[:3] == ["asks", "execute_complete", "None"]
    assert question[4] == [{"id": "ann", "name": "ann"}]
    assert "| orders | 3 | 1 | 0 | 0 |" in question[3]
    before, block, after = question[3].partition("```json\n")[2].partition("\n```\n")
    assert json.loads(before) == {"orders": {**COUNTS, "first": data}}  # data does not end the block of code
    assert (bool(block), after) == (True, "")
    assert "\u202e" not in question[3]
    assert equal[0] == "AirflowSkipException"
    assert again == ["done", {"orders": {**COUNTS, "different": 0}}]  # an earlier try may have promoted it
    assert failed[0] == "AirflowFailException"
    assert approved == ["done", {**PROMOTED, "exit_code": 0}]
    assert rejected[0] == "AirflowSkipException"
    assert later == ["waits", "promote", {"tries": 1}, True]
    assert too_often[0] == "AirflowFailException"
    assert at_last[0] == "done"
    assert changed[0] == "AirflowFailException", "a retry cannot help"
