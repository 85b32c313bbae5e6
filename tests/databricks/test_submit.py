"""`rewindow databricks submit` against a workspace on loopback: its requests, and the exit codes of each outcome."""

from __future__ import annotations

import json

import pytest

from rewindow.app.cli.entry import run_command
from rewindow.databricks.submit import ended, exit_code
from tests.databricks.workspace import Workspace

SUBMIT = [
    "databricks",
    "submit",
    "hourly_departures",
    "--interval-end",
    "2013-02-01T00:00:00Z",
    "--poll",
    "0",
    "--json",
]


def sent(there: Workspace, call: str = "run-now") -> list[dict[str, object]]:
    return [given for path, given in there.asked if path.endswith(call)]


def test_a_run_is_started_followed_and_gives_the_exit_code(there: Workspace, capsys) -> None:
    assert run_command(SUBMIT) == 0
    (given,) = sent(there)
    assert given["job_id"] == 11
    assert given["job_parameters"] == {"interval_end": "2013-02-01T00:00:00Z"}
    assert len(str(given["idempotency_token"])) <= 64
    said = json.loads(capsys.readouterr().out)
    assert (said["run_id"], said["state"], said["code"]) == (100, "SUCCESS", 0)


def test_a_second_start_finds_the_run(there: Workspace) -> None:
    assert run_command([*SUBMIT, "--no-wait"]) == 0
    assert run_command(SUBMIT) == 0
    assert len(there.runs) == 1
    assert run_command([*SUBMIT, "--new"]) == 0
    assert len(there.runs) == 2


def test_a_failed_run_is_started_again(there: Workspace) -> None:
    there.story = [("RUNNING", None), ("TERMINATED", "FAILED")]
    assert run_command(SUBMIT) == 74
    there.story = [("RUNNING", None), ("TERMINATED", "SUCCESS")]
    assert run_command(SUBMIT) == 0
    assert len(there.runs) == 2


def test_a_request_that_the_sdk_repeats_starts_one_run(there: Workspace) -> None:
    for number, new in enumerate(([], ["--new"], ["--new"])):
        there.breaks["run-now"] = 1
        assert run_command([*SUBMIT, *new]) == 0
        assert len(there.runs) == number + 1, "the answer was lost, the run was started"
    tokens = [given["idempotency_token"] for given in sent(there)]
    assert [tokens.count(token) for token in tokens] == [2] * 6
    assert max(len(str(token)) for token in tokens) <= 64


@pytest.mark.parametrize(
    ("call", "new", "advice"),
    [
        ("jobs/list", ["--new"], "(the service is down): try again"),
        ("run-now", [], "(the service is down): try again, no run is started twice"),
        ("run-now", ["--new"], "(the service is down): look in the workspace whether the run is started"),
        (
            "runs/get",
            ["--new"],
            "(the service is down): run 100 is started, submit again to follow it, or after --new look",
        ),
    ],
)
def test_advice_after_a_lost_answer_starts_no_run_twice(
    there: Workspace, capsys, call: str, new: list[str], advice: str
) -> None:
    there.fails = call
    assert run_command([*SUBMIT, *new]) == 74
    error = json.loads(capsys.readouterr().out)["error"]
    assert advice in error
    assert ("started twice" in error) == (advice.endswith("twice"))


def test_many_failed_runs_end_the_retries(there: Workspace, capsys) -> None:
    there.story = [("TERMINATED", "FAILED")]
    assert run_command(SUBMIT) == 78
    url = f"{there.host}/#job/11/run/119"
    said = json.loads(capsys.readouterr().out)
    assert (said["code"], url in said["error"], "--new" in said["error"]) == ("databricks-runs-failed", True, True)
    there.story = [("TERMINATED", "SUCCESS")]
    assert run_command([*SUBMIT, "--new"]) == 0


@pytest.mark.parametrize("code", [65, 66, 70, 71, 74, 75, 76, 77, 78])
def test_the_exit_code_of_the_task_is_returned(there: Workspace, code: int) -> None:
    there.story, there.error = [("RUNNING", None), ("TERMINATED", "FAILED")], f"TaskError: {ended(code, 'why')}"
    assert run_command(SUBMIT) == code


@pytest.mark.parametrize(
    ("life_cycle", "result", "code"),
    [
        ("TERMINATED", "SUCCESS", 0),
        ("TERMINATED", "FAILED", 74),
        ("TERMINATED", "CANCELED", 143),
        ("TERMINATED", "TIMEDOUT", 75),
        ("TERMINATED", "MAXIMUM_CONCURRENT_RUNS_REACHED", 75),
        ("SKIPPED", None, 75),
        ("TERMINATED", "DISABLED", 78),
        ("INTERNAL_ERROR", None, 74),
        ("INTERNAL_ERROR", "FAILED", 74),
        ("TERMINATED", "UPSTREAM_FAILED", 74),
        ("TERMINATED", "SUCCESS_WITH_FAILURES", 74),
        ("TERMINATED", "SOMETHING_NEW", 74),
    ],
)
def test_exit_codes_of_runs_without_our_message(life_cycle: str, result: str | None, code: int) -> None:
    assert exit_code(life_cycle, result) == code


def test_every_state_of_the_sdk_is_an_active_one_or_has_a_code() -> None:
    from databricks.sdk.service.jobs import RunLifeCycleState, RunResultState

    from rewindow.databricks.submit import is_active

    ends = {state.value for state in RunLifeCycleState if not is_active(state.value)}
    assert ends == {"TERMINATED", "SKIPPED", "INTERNAL_ERROR"}
    assert [result for result in RunResultState if exit_code("TERMINATED", result.value) == 0] == [
        RunResultState.SUCCESS
    ]


def test_a_run_continues_after_the_timeout(there: Workspace, capsys) -> None:
    there.story = [("RUNNING", None)]
    assert run_command([*SUBMIT, "--timeout", "0"]) == 75
    assert "continues" in json.loads(capsys.readouterr().out)["error"]


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["databricks", "submit", "nobody"], 78, "no job called 'nobody'"),
        (["databricks", "submit", "12"], 78, "does not exist"),
        ([*SUBMIT, "--parameter", "x"], 2, "NAME=VALUE"),
        ([*SUBMIT, "--parameter", "x={{backfill}}"], 2, "template"),
        (["databricks", "submit", "hourly_departures", "--interval-end", "soon"], 2, "'soon' is not a valid time"),
        (
            ["databricks", "submit", "hourly_departures", "--parameter", "interval_end=1st"],
            2,
            "'1st' is not a valid time",
        ),
    ],
)
def test_a_refusal_names_the_fix(there: Workspace, capsys, arguments: list[str], code: int, named: str) -> None:
    assert run_command([*arguments, "--json"]) == code
    assert named in json.loads(capsys.readouterr().out)["error"]
    assert not there.runs


def test_without_a_command_help_is_shown(capsys) -> None:
    assert run_command(["databricks"]) == 2
    said = capsys.readouterr()
    assert "submit" in said.out
    assert said.err == "rewindow: missing command (see --help) [command-line-invalid]\n"


def test_denied_access_is_77(there: Workspace) -> None:
    there.refuses = 403
    assert run_command(SUBMIT) == 77


def test_no_workspace_is_78(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", "/nowhere")
    assert run_command(SUBMIT) == 78
