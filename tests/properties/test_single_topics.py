"""A sub-topology with one topic has a loop of its own (`streams.topic_replay`): the same results as that of several topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.streams import topic_replay
from rewindow.streams.ordering import Rows, events, merge
from rewindow.streams.settings import Semantics
from rewindow.streams.task import Task
from rewindow.testing import Epoch
from rewindow.testing.strategies import epochs
from tests.properties.batching import Plan, batch_plans
from tests.properties.effort import examples
from tests.properties.test_batches import TOPICS, read
from tests.properties.test_batches import replayed as replayed_processor
from tests.properties.test_cuts import GLIDING, replayed
from tests.properties.topologies import TOPICS as TOPICS_OF_PLANS
from tests.properties.topologies import plans


def _as_events(task: Task, topics: Sequence[Iterable[Rows]]) -> None:
    task.replay(merge([events(rank, rows) for rank, rows in enumerate(topics)]))


@given(plans(), epochs(TOPICS_OF_PLANS), st.lists(st.integers(1, 4)), GLIDING, st.integers(1, 3))
@examples(100)
def test_the_rows_of_operators_give_what_their_events_give(
    steps: list[tuple[Any, ...]], given_epochs: list[Epoch], cuts: list[int], semantics: Semantics, size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic_replay, "CHECK_EVERY", size)
        as_rows = replayed(steps, given_epochs, cuts, semantics)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Task, "replay_rows", _as_events)
        as_events = replayed(steps, given_epochs, cuts, semantics)
    assert as_rows == as_events


@given(batch_plans(), epochs(TOPICS), GLIDING, st.booleans())
@examples(100)
def test_the_rows_of_a_processor_with_schedules_give_what_its_events_give(
    plan: Plan,
    given_epochs: list[Epoch],
    semantics: Semantics,
    cuts: bool,  # noqa: FBT001 - drawn
) -> None:
    given_epochs = read(plan, given_epochs)
    as_rows = replayed_processor(plan, given_epochs, semantics, takes_many=False, cuts=cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Task, "replay_rows", _as_events)
        as_events = replayed_processor(plan, given_epochs, semantics, takes_many=False, cuts=cuts)
    assert as_rows == as_events
