"""What a `RewindowOperator` takes for a result, and what fails it, with real Airflow classes and commands of a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewindow.airflow.task_results import is_result
from tests.airflow.forked import Airflow
from tests.airflow.home import environment
from tests.bad_input.scene import Bench, copy_of, without_spark

COUNTS = {"equal": 3, "different": 1, "only_first": 0, "only_second": 0}
PROBE = """
import json, sys
from rewindow.airflow.operators import RewindowOperator

def ended(printed, code, arguments=("diff", "orders", "main", "fix"), accepts={1}):
    command = f"import sys; print({printed!r}); sys.exit({code})"
    task = RewindowOperator(
        task_id="t", arguments=list(arguments), accepts=accepts, project=FOLDER, folder=FOLDER, poll_s=0.02,
        executable=[sys.executable, "-c", command],
    )
    try:
        return [True, task.execute({})]
    except Exception as error:
        return [False, type(error).__name__, str(error)]

print(json.dumps([ended(*one) for one in CASES]))
"""


@pytest.mark.slow
def test_an_exit_code_is_a_result_only_of_a_command_that_printed_one(airflow: Airflow, tmp_path: Path) -> None:
    cases = [
        (json.dumps({"orders": COUNTS}), 1),
        ("", 1),
        (json.dumps({"level": "error", "message": "no image"}), 1),
        (json.dumps({"error": "the branch is torn\x1b[2J\u202e", "exit_code": 1}), 1),
        (json.dumps({"main/3": {"orders": 1}}), 1, ("verify", "orders")),
        ("", 1, ("verify", "orders")),
        ("", 0),
    ]
    code = PROBE.replace("FOLDER", repr(str(tmp_path))).replace("CASES", repr(cases))
    found = airflow.answers(code, environment(tmp_path, tmp_path))
    different, nothing, other, failed, verified, unverified, equal = found
    assert different == [True, {"orders": COUNTS, "exit_code": 1}]
    for one in (nothing, other, unverified):
        assert one[:2] == [False, "AirflowFailException"]
        assert one[2].startswith("The command ended with exit code 1 and printed no result, so rewindow did not run.")
    assert failed[:2] == [False, "AirflowFailException"]
    assert failed[2].startswith("the branch is torn\\x1b[2J\\u202e\n")
    assert verified == [True, {"main/3": {"orders": 1}, "exit_code": 1}]
    assert equal == [True, {"exit_code": 0}]


def test_what_diff_prints_is_its_result(two_hours: Bench, tmp_path: Path) -> None:
    with without_spark():
        bench = copy_of(two_hours, tmp_path / "project")
        assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
        answer = bench.run("diff", "counts", "main", "fix", "--json")
    assert is_result("diff", json.loads(answer.out))
    assert not is_result("diff", json.loads(bench.run("diff", "counts", "main", "nobody", "--json").out))


BROKEN = """
import json
from rewindow.airflow import operators
from rewindow.airflow.operators import RewindowOperator

def start(*_, **__):
    raise OSError(28, "No space left on device")

operators.Command = start
task = RewindowOperator(task_id="run", job="counts", project=FOLDER)
warned = []
task.log.warning = lambda text, *of: warned.append(text % of)
ran = {"run": "main/3", "summary": {"job": "counts", "branch": "main", "run": "main/3"}}
print(json.dumps([task._write_report(ran), warned]))
"""


@pytest.mark.slow
def test_a_full_disk_fails_no_task_whose_work_is_done(airflow: Airflow, two_hours: Bench, tmp_path: Path) -> None:
    with without_spark():
        bench = copy_of(two_hours, tmp_path / "project")
    code = BROKEN.replace("FOLDER", repr(str(bench.root)))
    printed = airflow.answers(code, environment(tmp_path, tmp_path))
    why = "OSError: [Errno 28] No space left on device"
    assert printed == [
        None,
        [f"The work is done, but its report was not written: {why}"],
    ]


STORED = """
import json, os, subprocess, sys
from pathlib import Path
from types import SimpleNamespace
from rewindow.airflow.operators import RewindowOperator

class Store(dict):
    def set(self, key, value):
        self[key] = value

victim, other = Path(FOLDER, "victim"), subprocess.Popen(["sleep", "600"], start_new_session=True)
victim.mkdir()
forged = {"host": os.uname().nodename, "pid": other.pid, "born": 0.0, "folder": str(victim)}
store = Store(rewindow_process=forged, rewindow_limits=-5)
task = RewindowOperator(
    task_id="t", arguments=["verify", "orders"], project=FOLDER, folder=FOLDER, poll_s=0.02,
    executable=[sys.executable, "-c", "print('{}')"],
)
task.on_kill()
task.execute({"task_state_store": store, "ti": SimpleNamespace(try_number=2, dag_id="d", run_id="r", task_id="t")})
task.on_kill()
print(json.dumps([victim.is_dir(), other.poll(), sorted(store)]))
other.kill()
"""


@pytest.mark.slow
def test_what_a_user_writes_into_the_task_state_store_removes_and_signals_nothing(
    airflow: Airflow, tmp_path: Path
) -> None:
    code = STORED.replace("FOLDER", repr(str(tmp_path)))
    assert airflow.answers(code, environment(tmp_path, tmp_path)) == [
        True,
        None,
        ["rewindow_limits", "rewindow_process"],
    ], "nothing is stored either"
