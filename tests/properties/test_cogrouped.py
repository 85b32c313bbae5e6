"""L2, and spilling, for a cogroup or a transformed table in every run: other random topologies have one only sometimes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.streams.settings import Limits, Semantics, Settings
from rewindow.testing import Epoch
from rewindow.testing.local_task import LocalTask
from rewindow.testing.strategies import epochs
from tests.properties.cogrouped import cogroupings, transformings
from tests.properties.effort import examples
from tests.properties.test_cuts import GLIDING, replayed
from tests.properties.topologies import TOPICS

PLANS = st.one_of(
    st.tuples(st.just("cogroup"), st.integers(0, 1), st.integers(0, 1), cogroupings()).map(lambda one: [one]),
    st.tuples(st.just("transform"), st.integers(0, 1), transformings()).map(lambda one: [one]),
)


@given(PLANS, epochs(TOPICS), st.lists(st.integers(1, 4)), GLIDING, st.sampled_from(["open", "sealed"]))
@examples(100)
def test_runs_make_no_difference(
    steps: list[tuple[Any, ...]], given_epochs: list[Epoch], cuts: list[int], semantics: Semantics, end: str
) -> None:
    if end == "sealed":
        given_epochs = [*given_epochs, Epoch(watermark_ms=given_epochs[-1].watermark_ms, is_final=True)]
    whole = replayed(steps, given_epochs, [], semantics, restarts=False)
    assert replayed(steps, given_epochs, cuts, semantics) == whole


@given(PLANS, epochs(TOPICS), st.lists(st.integers(1, 4)), GLIDING)
@examples(60)
def test_spilling_makes_no_difference(
    steps: list[tuple[Any, ...]], given_epochs: list[Epoch], cuts: list[int], semantics: Semantics
) -> None:
    in_memory = replayed(steps, given_epochs, [], semantics)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LocalTask.__init__.__kwdefaults__, "is_bound", True)
        spilling = Settings(limits=Limits(store_memory=1))
        assert replayed(steps, given_epochs, cuts, semantics, settings=spilling) == in_memory
