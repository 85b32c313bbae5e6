"""Random topologies with windows in local time: cuts change nothing, and final results equal a simple model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow import Collect, Count, EmitStrategy, KTable, StreamsBuilder, Sum, Topology, until_window_closes
from rewindow.storage.zone_data import read_zone
from rewindow.streams.metrics import LATE_RECORD_DROP
from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests.properties.clock_changes import Timed, timed, with_times
from tests.properties.effort import examples
from tests.properties.test_window_kinds import sealed

TOPICS = ("left", "right")
WORDS = st.sampled_from(["update", "emit", "suppress"])
SEMANTICS = st.builds(
    Semantics, stream_time=st.sampled_from(["max", "min"]), stream_time_from=st.sampled_from(["records", "watermark"])
)


@dataclass(frozen=True)
class Plan:
    """A topology: how windows are made of two streams, what they send, and what is done with their results."""

    times: Timed
    inputs: str
    word: str
    is_stored: bool
    behind: Timed | None
    """Windows of another sub-topology, which count the results."""

    def build(self) -> Topology:
        builder = StreamsBuilder()
        table = self._table(builder)
        stream = (table.suppress(until_window_closes(), name="held") if self.word == "suppress" else table).to_stream()
        if self.behind is not None:
            again: Any = stream.group_by(lambda of, _: of.key).windowed_by(self.behind.windows)
            stream = again.count(store="again").suppress(until_window_closes(), name="held-again").to_stream()
        stream.to("out")
        return builder.build()

    def _table(self, builder: StreamsBuilder) -> KTable:
        windows = self.times.windows
        left, right = (builder.stream(topic).group_by_key() for topic in TOPICS)
        if self.inputs == "cogroup":
            both = left.cogroup(lambda _key, value, total: total + value)
            both = both.cogroup(right, lambda _key, value, total: total - value)
            return both.windowed_by(windows).aggregate(int, store="state", value=int)
        made: list[KTable] = []
        for name, grouped in (("state", left), ("other", right)):
            windowed: Any = grouped.windowed_by(windows)
            if self.word == "emit":
                windowed = windowed.emit_strategy(EmitStrategy.on_window_close())
            made.append(windowed.aggregate({"n": Count(), "total": Sum(), "all": Collect()}, store=name))
        if self.inputs == "one":
            made[1].to_stream().to("unused")
            return made[0]
        store = "joined" if self.is_stored or self.word == "suppress" else None
        return made[0].outer_join(made[1], lambda one, other: f"{one} {other}", store=store, value=str)


PLANS = st.builds(
    Plan,
    timed(),
    st.sampled_from(["one", "cogroup", "join"]),
    WORDS,
    st.booleans(),
    st.one_of(st.none(), timed()),
)


@given(PLANS, epochs(TOPICS, max_ms=90), st.lists(st.integers(1, 4)), SEMANTICS, st.sampled_from([list, sealed]))
@examples(150)
def test_cuts_make_no_difference(
    plan: Plan, given_epochs: list[Epoch], cuts: list[int], semantics: Semantics, closed: Any
) -> None:
    story = closed(with_times(plan.times, given_epochs))
    results = []
    for ends in ([], sorted(set(cuts)), range(1, len(story))):
        replay = LocalReplay(plan.build(), partitions=2, semantics=semantics)
        bounds = [0, *(end for end in ends if end < len(story)), len(story)]
        for start, end in pairwise(bounds):
            replay.run(story[start:end], restarts=bool(ends))
        results.append((replay.sent, replay.checkpoints(), replay.metrics))
    assert results[0] == results[1] == results[2]


@given(timed(), epochs(["left"], max_ms=90), st.sampled_from(["emit", "suppress"]))
@examples(100)
def test_final_results_equal_a_model(times: Timed, given_epochs: list[Epoch], word: str) -> None:
    story = with_times(times, given_epochs)
    replay = LocalReplay(Plan(times, "one", word, is_stored=False, behind=None).build())
    replay.run(sealed(story))
    windows = times.windows.bound_to(read_zone(times.zone))
    lists: dict[tuple[Any, Any], list[Any]] = {}
    late, now = 0, -1
    for _, key, value, time in (record for one in story for record in one.records):
        now = max(now, time)
        for window in windows.windows(time):
            assert window.start_ms <= time < window.end_ms
            if window.end_ms + windows.grace_ms > now:
                lists.setdefault((key, window), []).append(value)
            else:
                late += 1
    assert {(one.record.key.key, one.record.key.window): one.record.value.all for one in replay.sent} == lists
    assert len(replay.sent) == len(lists)
    assert all(one.record.value.n == len(one.record.value.all) for one in replay.sent)
    assert sum(measured[1] for (_, _, name, _), measured in replay.metrics.items() if name == LATE_RECORD_DROP) == late
    ends = [one.record.key.window.end_ms for one in replay.sent]
    assert ends == sorted(ends)


@given(timed(), epochs(["left"], max_ms=90), SEMANTICS)
@examples(60)
def test_suppress_and_emit_on_close_send_the_same_results(
    times: Timed, given_epochs: list[Epoch], semantics: Semantics
) -> None:
    sent = []
    for word in ("emit", "suppress"):
        replay = LocalReplay(
            Plan(times, "one", word, is_stored=False, behind=None).build(), partitions=2, semantics=semantics
        )
        replay.run(sealed(with_times(times, given_epochs)))
        sent.append(Counter((one.epoch, one.record.key, str(one.record.value)) for one in replay.sent))
    assert sent[0] == sent[1]
