"""L2 for processors that take batches: how records are divided into batches makes no difference."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow.streams.batch_processor import batch_limits
from rewindow.streams.settings import Semantics, Settings
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests.properties.batching import Plan, batch_plans
from tests.properties.effort import examples
from tests.properties.test_cuts import GLIDING, PARTITIONS

TOPICS = ("left", "right")


def replayed(
    plan: Plan,
    given_epochs: list[Epoch],
    semantics: Semantics,
    *,
    takes_many: bool = True,
    cuts: bool = False,
    batch: int | None = None,
    keeps_dropped: bool = False,
) -> tuple[Any, ...]:
    topology, settings = plan.build(takes_many=takes_many), Settings(keeps_dropped=keeps_dropped)
    replay = LocalReplay(topology, partitions=PARTITIONS, semantics=semantics, settings=settings)
    for some in [[epoch] for epoch in given_epochs] if cuts else [given_epochs]:
        replay.run(some, batch=batch)
    return replay.sent, replay.checkpoints(), replay.metrics, replay.dropped


def read(plan: Plan, given_epochs: list[Epoch]) -> list[Epoch]:
    """Return the epochs without records of topics that the topology does not read."""
    topics = TOPICS[:1] if plan.second == "none" else TOPICS
    return [
        Epoch(tuple(record for record in epoch.records if record[0] in topics), epoch.watermark_ms)
        for epoch in given_epochs
    ]


@given(batch_plans(), epochs(TOPICS), GLIDING, st.integers(1, 6), st.sampled_from([False, True]))
@examples(150)
def test_batches_of_any_size_give_what_batches_of_one_give(
    plan: Plan,
    given_epochs: list[Epoch],
    semantics: Semantics,
    size: int,
    keeps_dropped: bool,  # noqa: FBT001 - drawn
) -> None:
    given_epochs = read(plan, given_epochs)
    one_by_one = replayed(plan, given_epochs, semantics, batch=1, keeps_dropped=keeps_dropped)
    for batch in (size, None):
        many = replayed(plan, given_epochs, semantics, batch=batch, keeps_dropped=keeps_dropped)
        for one, other in zip(one_by_one, many, strict=True):
            assert one == other


@given(batch_plans(), epochs(TOPICS), GLIDING, st.booleans())
@examples(100)
def test_batches_give_what_record_by_record_gives_however_runs_are_cut(
    plan: Plan,
    given_epochs: list[Epoch],
    semantics: Semantics,
    cuts: bool,  # noqa: FBT001 - drawn
) -> None:
    given_epochs = read(plan, given_epochs)
    many = replayed(plan, given_epochs, semantics, cuts=cuts)
    by_record = replayed(plan, given_epochs, semantics, takes_many=False)
    for one, other in zip(many, by_record, strict=True):
        assert one == other


@given(batch_plans())
@examples(20)
def test_the_topologies_are_worth_their_names(plan: Plan) -> None:
    for takes_many in (True, False):
        part = plan.build(takes_many=takes_many).sub_topologies()[0]
        reason = batch_limits(part, (), keeps_dropped=False)["batching"]
        assert reason == ("" if takes_many else "other nodes read the topic 'left' too")
