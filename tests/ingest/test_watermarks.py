"""D16: what a landing waits for, and which records it releases."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rewindow.control.ingest.decide import WatermarkPolicy, decide_watermark, release_offset
from rewindow.control.ingest.landings import Delivery, Feed, FeedDefinition, HeldFile, LandedRange, Landing
from rewindow.streams.record import UNKNOWN, TopicPartition

A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
DELIVERIES = {A: Delivery(100, 10), B: Delivery(50, 30), C: Delivery(80, 20)}

deliveries = st.dictionaries(
    st.sampled_from([A, B, C]), st.builds(Delivery, st.integers(-1, 1000), st.integers(0, 100)), max_size=3
)


def watermark(policy, found=DELIVERIES, landed_ms=30, **more):
    return decide_watermark(policy, found, landed_ms=landed_ms, **more)


def test_nobody_waits_by_default():
    assert watermark(WatermarkPolicy()).time_ms == 100


def test_forever_waits_for_the_slowest_that_ever_delivered():
    assert watermark(WatermarkPolicy(None)).time_ms == 50


def test_a_while_leaves_out_those_that_were_quiet_and_counts_them():
    decided = watermark(WatermarkPolicy(15))
    assert (decided.time_ms, decided.idle) == (50, (A,))
    decided = watermark(WatermarkPolicy(15), landed_ms=44)
    assert (decided.time_ms, decided.idle) == (50, (A, C))


def test_if_all_were_quiet_nobody_is_waited_for():
    decided = watermark(WatermarkPolicy(15), landed_ms=1000)
    assert (decided.time_ms, decided.idle) == (100, (A, B, C))


def test_lag_holds_back_and_declarations_win():
    assert watermark(WatermarkPolicy(0, lag_ms=30)).time_ms == 70
    assert watermark(WatermarkPolicy(0, 30, interval_end=True), interval_end_ms=500).time_ms == 470
    assert watermark(WatermarkPolicy(0, 30, interval_end=True), interval_end_ms=500, declared_ms=90).time_ms == 90


def test_before_the_first_record_it_is_unknown():
    assert watermark(WatermarkPolicy(), {}).time_ms == UNKNOWN


@given(
    deliveries,
    st.sampled_from([0, None, 5, 50]),
    st.integers(0, 50),
    st.integers(-1, 2000),
    st.none() | st.integers(0, 2000),
)
def test_it_never_falls_and_waiting_longer_never_raises_it(found, idle, lag, before, declared):
    policy = WatermarkPolicy(idle, lag)
    decided = watermark(policy, found, before_ms=before, declared_ms=declared)
    assert decided.time_ms >= before
    forever = watermark(WatermarkPolicy(None, lag), found, before_ms=before)
    at_once = watermark(WatermarkPolicy(0, lag), found, before_ms=before)
    if declared is None:
        assert forever.time_ms <= decided.time_ms <= at_once.time_ms


@st.composite
def held_files(draw):
    """Draw the timestamps of a partition, split into files."""
    times = draw(st.lists(st.integers(0, 20), min_size=1, max_size=30))
    cuts = sorted({0, len(times), *draw(st.lists(st.integers(0, len(times)), max_size=4))})
    files = [HeldFile("a", str(i), s, e, max(times[s:e])) for i, (s, e) in enumerate(pairwise(cuts))]
    return times, files


@given(held_files(), st.integers(-1, 21), st.integers(-1, 21))
def test_release_is_up_to_the_first_record_above_the_watermark(drawn, earlier, later):
    times, files = drawn

    def first_above(file, offset, time):
        assert file.start <= offset < file.end
        return next((at for at in range(offset, file.end) if times[at] > time), None)

    def naive(time):
        return next((at for at, stamp in enumerate(times) if stamp > time), len(times))

    first, held = release_offset(files, 0, len(times), earlier, first_above)
    assert first == naive(earlier)
    assert [file for file in files if file.end > first] == list(held)
    again, _ = release_offset(held, first, len(times), max(earlier, later), first_above)
    assert again == naive(max(earlier, later))


def test_a_task_that_takes_records_without_waiting_for_a_topic_is_enforced():
    """KIP-353's metric counts these epochs by task."""

    def landing(number, released, given_up):
        ranges = {where: LandedRange(0, end, end, end) for where, end in released.items()}
        return Landing.from_json(Landing(number, 1, 100 * number, ranges, counts={}, idle=given_up).as_json())

    definition = FeedDefinition("f", 1, 2, {}, "", 0)
    feed = Feed(
        definition,
        (
            landing(1, {A: 3, B: 1, C: 2}, ()),
            landing(2, {A: 3, B: 1, C: 5}, (A,)),
            landing(3, {A: 3, B: 2, C: 5}, (A,)),
        ),
    )
    told = {(epoch, p): feed.is_enforced(epoch, ["a", "b"], p) for epoch in (1, 2, 3) for p in (0, 1)}
    assert [where for where, is_enforced in told.items() if is_enforced] == [(2, 0)]
    assert not feed.is_enforced(2, ["b"], 0), "this task does not read the topic that was given up"
