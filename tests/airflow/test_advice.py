"""What a task says when its command fails: which params the options are, and what a command needs on a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindow.airflow.dag_run import in_a_dag
from tests.bad_input.scene import Bench, copy_of, without_spark

WHERE = "--project /opt/shop --target local"
PARAMS = ("through", "accept_changes")


@pytest.fixture
def bench(two_hours: Bench, tmp_path: Path) -> Iterator[Bench]:
    with without_spark():
        yield copy_of(two_hours, tmp_path / "project")


def test_a_refused_change_names_the_params_and_the_backfill_dag(bench: Bench) -> None:
    bench.edit("bench_job.py", 'grace="5m"', 'grace="6m"')
    refused = bench.run("run", "counts").err
    assert "`rewindow backfill" in refused
    told = in_a_dag(refused, params=PARAMS, where=WHERE, dag_id="night_counts").removeprefix(refused)
    assert "night_counts__backfill" in told
    assert WHERE in told


@pytest.mark.parametrize(
    ("message", "params", "where", "added"),
    [
        ("resume with these changes, --accept-changes", PARAMS, WHERE, ["accept_changes", WHERE]),
        ("resume with these changes, --accept-changes", PARAMS, "", ["accept_changes"]),
        ("wait for it, or pass --takeover to fence it", PARAMS, WHERE, [WHERE]),
        ("run `rewindow land orders` first", PARAMS, WHERE, [WHERE]),
        *((other, PARAMS, WHERE, []) for other in ("", "orders: 3 -- 4", "d3.csv, line 5: 'a--b' is not a number")),
    ],
)
def test_options_are_named_as_params_and_commands_get_what_they_need_on_a_worker(
    message: str, params: tuple[str, ...], where: str, added: list[str]
) -> None:
    lines = in_a_dag(message, params=params, where=where).removeprefix(message).splitlines()[1:]
    assert len(lines) == len(added)
    for line, fact in zip(lines, added, strict=True):
        assert fact in line
