"""The entry point of a Databricks task: what it refuses, what it repeats, and how a failure ends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindow.app.wheel_task import TaskError, commands_of, main
from rewindow.databricks.submit import exit_code
from tests.conftest import ROOT, copy_project
from tests.refusals import containing, refused


def test_an_unresolved_reference_is_refused() -> None:
    with refused("reference-unresolved"):
        commands_of(["--job=hourly_departures", f"--project={ROOT}", "--interval_end={{job.triger.time}}"])


def test_an_unknown_parameter_is_refused() -> None:
    with refused("task-parameters-invalid", reason=containing("--jobs")):
        commands_of(["--jobs=x", "--job=hourly_departures", f"--project={ROOT}"])


def test_a_failed_command_ends_the_task_with_its_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = copy_project(tmp_path)
    (root / "conf" / "targets" / "databricks.yaml").write_text("target: databricks\nwarehouse: warehouse\n")
    monkeypatch.setattr("sys.argv", ["rewindow-task", "--job=hourly_departures", f"--project={root}"])
    monkeypatch.setattr("rewindow.app.wheel_task.run_command", lambda command: 66 if command[0] == "land" else 0)
    with pytest.raises(TaskError, match="rewindow ended with 66: `rewindow land flights`") as raised:
        main()
    assert exit_code("TERMINATED", "FAILED", f"TaskError: {raised.value}") == 66


@pytest.mark.parametrize(
    ("codes", "ends", "waits"),
    [
        ([74, 75, 0], 0, [60, 120]),
        ([75, 75, 75, 75], 75, [60, 120, 240]),
        ([71, 0], 0, [60]),
        ([71, 71], 71, [60]),
        ([76], 76, []),
        ([65], 65, []),
        ([70], 70, []),
        ([130], 130, []),
        ([75, 143], 143, [60]),
    ],
)
def test_a_task_repeats_what_a_retry_can_help_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, codes: list[int], ends: int, waits: list[int]
) -> None:
    answers, waited = iter(codes), []
    monkeypatch.setattr("sys.argv", ["rewindow-task", "--job=hourly_departures", f"--project={ROOT}"])
    monkeypatch.setattr(
        "rewindow.app.wheel_task.run_command", lambda command: 0 if command[0] == "land" else next(answers)
    )
    monkeypatch.setattr("rewindow.app.wheel_task.time.sleep", waited.append)
    if ends:
        with pytest.raises(TaskError, match=f"rewindow ended with {ends}"):
            main()
    else:
        main()
    assert waited == waits
    assert list(answers) == []
