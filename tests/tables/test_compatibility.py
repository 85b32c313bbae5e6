"""A changed job on an old checkpoint: the refusal states what would happen to each store; compatible changes can be accepted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rewindow import Count, StreamsBuilder, Sum, TimeWindows, Topology, until_window_closes
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_fold import PLAN
from rewindow.errors import CheckpointError
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import content_hash, read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from tests.control.ledgers import TOPIC
from tests.refusals import containing, refused
from tests.tables.scene import JOB, land, machine, replay

pytestmark = pytest.mark.slow


def built(
    *, window: str = "30m", aggregate: object = None, more: bool = False, where: bool = False, topic: str = TOPIC
) -> Callable[[], Topology]:
    def build() -> Topology:
        builder = StreamsBuilder()
        events = builder.stream(topic)
        if where:
            events = events.filter(lambda _user, value: value is not None, name="not-null")
        (
            events.group_by_key()
            .windowed_by(TimeWindows.of(window, grace="5m"))
            .aggregate(aggregate or Count(), store="sums")
            .suppress(until_window_closes(), name="closed")
            .to_stream()
            .to("totals")
        )
        if more:
            events.group_by_key().aggregate(Count(), store="since").to_stream().to("seen")
        return builder.build()

    return build


NEW_NODE = "node not-null: is new"


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    land(str(tmp_path), 4)
    drive(machine(str(tmp_path), "a1", build=built(), through_landing=2))
    return str(tmp_path)


def go_on(warehouse: str, build: Callable[[], Topology], attempt: str, **request: object) -> None:
    drive(machine(warehouse, attempt, build=build, **request))


def test_a_change_is_refused_with_what_would_become_of_it(warehouse: str) -> None:
    effects = containing("store since is new and starts empty; store sums is kept")
    facts = {"changes": containing(NEW_NODE), "effects": effects, "run_option": "--accept-changes"}
    with refused("job-changed-since-checkpoint", **facts):
        go_on(warehouse, built(more=True, where=True), "b")


def test_an_accepted_change_goes_on_and_stands_in_the_plan(
    warehouse: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    changed = built(more=True, where=True)
    go_on(warehouse, changed, "b", accept_changes=True, through_landing=3)
    go_on(warehouse, changed, "c")  # the checkpoint now fits the changed job
    plans = [row.body for row in DeltaTables(warehouse).ledger(JOB).read() if row.kind == PLAN]
    assert [NEW_NODE in plan.get("accepted", ()) for plan in plans] == [False, True, False]
    unedited = str(tmp_path_factory.mktemp("unedited"))
    land(unedited, 4)
    go_on(unedited, built(), "p")
    totals = [table_path(path, "alerts/totals") for path in (warehouse, unedited)]
    assert content_hash(totals[0]) == content_hash(totals[1])
    seen = read_rows(table_path(warehouse, "alerts/seen"))
    assert min(seen["_epoch"].to_pylist()) == 3
    assert min(seen["value"].to_pylist()) == 1


def test_a_store_that_is_left_behind_begins_empty_when_it_comes_again(warehouse: str) -> None:
    go_on(warehouse, built(more=True), "b", accept_changes=True, through_landing=3)
    with pytest.raises(CheckpointError, match="store since is removed"):
        go_on(warehouse, built(), "c")
    go_on(warehouse, built(), "c", accept_changes=True)
    assert DeltaTables(warehouse).hashes(JOB, "main")


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (built(window="20m"), "store sums is incompatible"),
        (built(aggregate=Sum()), "store sums is incompatible"),
        (built(aggregate={"n": Count(), "sum": Sum()}), "it has other columns"),
    ],
    ids=["window", "aggregate", "columns"],
)
def test_what_the_state_does_not_allow_stays_refused(warehouse: str, build: Callable[[], Topology], why: str) -> None:
    facts = {"effects": containing(why), "replay": containing("--branch NAME")}
    with refused("job-changed-since-checkpoint", **facts):
        go_on(warehouse, build, "b", accept_changes=True)


def test_a_dead_attempts_accepted_change_needs_no_second_word(warehouse: str) -> None:
    for step in machine(warehouse, "b", build=built(more=True), accept_changes=True, through_landing=3):
        if step == "commit":
            break
    go_on(warehouse, built(more=True), "c", through_landing=3)
    assert DeltaTables(warehouse).state(JOB).branch("main").last_epoch == 3
    replay(warehouse, "trial", "trial", through_landing=1)
