"""The metric `grace-needed` says how many records each grace period would have kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows
from rewindow.engine.worker.vectorized.vectorized_task import Clocks
from rewindow.streams.metrics import GRACE_BOUNDS_MS, GRACE_BUCKETS, GRACE_NEEDED, LATE_RECORD_DROP, grace_bucket
from rewindow.streams.settings import Semantics
from rewindow.testing import TopologyTestDriver
from tests.properties.effort import examples

KINDS = {
    "tumbling": lambda grace: TimeWindows.of("10s", grace=f"{grace}ms"),
    "sliding": lambda grace: SlidingWindows.of("10s", grace=f"{grace}ms"),
    "session": lambda grace: SessionWindows.of("10s", grace=f"{grace}ms"),
}
GRACES = [bound for bound in GRACE_BOUNDS_MS if bound <= 60_000]


def driven(windows: Any, times: list[int]) -> TopologyTestDriver:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(windows).count(store="counts").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for time in times:
        driver.pipe("in", "a", 1, time)
    return driver


def needed(driver: TopologyTestDriver) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in driver.metrics if row["name"] == GRACE_NEEDED}


def beyond(buckets: dict[str, int], grace_ms: int) -> int:
    first = GRACE_BOUNDS_MS.index(grace_ms) + 1
    return sum(buckets.get(name, 0) for name in GRACE_BUCKETS[first:])


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=30))
@examples(60)
def test_the_buckets_tell_what_another_grace_would_have_dropped(times: list[int]) -> None:
    buckets = needed(driven(KINDS["tumbling"](0), times))
    for grace in GRACES:
        driver = driven(KINDS["tumbling"](grace), times)
        late = sum(row["total"] for row in driver.metrics if row["name"] == LATE_RECORD_DROP)
        assert late == beyond(buckets, grace) == beyond(needed(driver), grace)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grace", GRACES)
def test_a_record_is_kept_with_exactly_the_grace_that_it_needed(kind: str, grace: int) -> None:
    newest = 200_000
    at = newest - 10_000 - grace + (1 if kind == "tumbling" else 0)
    if kind == "tumbling":
        at = at // 10_000 * 10_000 - 1  # the last instant of its window
        newest = at + grace  # the last clock at which that window is open with this grace
    for given_grace, dropped in ((grace, 0), (grace - 1, 1)):
        driver = driven(KINDS[kind](given_grace), [newest, at])
        if kind != "sliding":  # whose earlier windows close before the last one
            assert sum(row["total"] for row in driver.metrics if row["name"] == LATE_RECORD_DROP) == dropped
        (row,) = [row for row in driver.metrics if row["name"] == GRACE_NEEDED]
        assert (row["total"], row["reason"]) == (grace, grace_bucket(grace))


def test_records_in_order_need_no_grace() -> None:
    assert needed(driven(KINDS["tumbling"](0), [0, 5, 9_000, 8_000, 30_000, 30_000])) == {}


@given(st.lists(st.integers(-5_000, 4_000_000_000), min_size=1, max_size=50))
@examples(60)
def test_vectorized_execution_counts_into_the_same_buckets(graces: list[int]) -> None:
    clocks = Clocks("in", None, Semantics())
    clocks.count_needed_grace("node", np.array(graces))
    counted = {row["reason"]: (row["count"], row["total"]) for row in clocks.metrics.as_rows()}
    assert counted == {
        bucket: (len(mine), sum(mine))
        for bucket in GRACE_BUCKETS
        if (mine := [grace for grace in graces if grace > 0 and grace_bucket(grace) == bucket])
    }
