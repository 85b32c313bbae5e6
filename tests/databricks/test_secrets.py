"""A task on serverless compute gets its secrets from a secret scope, and no message contains one."""

from __future__ import annotations

import os

import pytest

from rewindow.app.wheel_task import TaskError, main
from rewindow.databricks import secrets
from tests.conftest import ROOT
from tests.databricks.workspace import Workspace
from tests.refusals import refused

TASK = ["rewindow-task", "--job=hourly_departures", f"--project={ROOT}"]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Record what the commands of a task find in their environment, instead of running them."""
    values: list[str | None] = []

    def run(_command: list[str]) -> int:
        values.append(os.environ.get("OPENLINEAGE_API_KEY"))
        return 0

    monkeypatch.setattr("rewindow.app.wheel_task.run_command", run)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "of the cluster")
    return values


def test_a_task_reads_its_secrets_before_its_commands(
    monkeypatch: pytest.MonkeyPatch, there: Workspace, seen: list[str | None]
) -> None:
    there.secrets["rewindow", "openlineage"] = "s3cret"
    monkeypatch.setattr("sys.argv", [*TASK, "--secrets=OPENLINEAGE_API_KEY=rewindow/openlineage"])
    main()
    assert seen == ["s3cret", "s3cret"]


def test_a_task_without_secrets_needs_no_workspace(
    monkeypatch: pytest.MonkeyPatch, there: Workspace, seen: list[str | None]
) -> None:
    monkeypatch.setattr("sys.argv", [*TASK, "--secrets="])
    main()
    assert seen == ["of the cluster", "of the cluster"]
    assert there.asked == []


@pytest.mark.parametrize(
    ("refuses", "code", "words"),
    [(0, 78, "Create the secret rewindow/openlineage"), (403, 77, "grant READ on the scope")],
)
def test_a_task_whose_secret_cannot_be_read_runs_nothing_and_names_it(
    monkeypatch: pytest.MonkeyPatch, there: Workspace, seen: list[str | None], refuses: int, code: int, words: str
) -> None:
    there.refuses = refuses
    monkeypatch.setattr("sys.argv", [*TASK, "--secrets=OPENLINEAGE_API_KEY=rewindow/openlineage"])
    with pytest.raises(TaskError, match=f"ended with {code}: .*{words}"):
        main()
    assert seen == []


def test_a_secret_that_databricks_does_not_give_is_asked_for_again(there: Workspace) -> None:
    there.fails = "secrets/get"
    with refused("databricks-no-answer", reason="the service is down", fix=": try again"):
        secrets.read({"KEY": ("rewindow", "openlineage")})


@pytest.mark.parametrize("text", ["rewindow/openlineage", "KEY=s3cret", "KEY=a/b/c", "KEY=a/b,OTHER=c/d"])
def test_what_is_not_the_name_of_a_secret_is_refused_without_repeating_it(text: str) -> None:
    with refused("secret-name-malformed") as caught:
        secrets.named(text)
    assert text not in str(caught.value)
