"""L2 for legacy processors and external effects: cuts change neither the results nor the idempotency keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import ProcessorContext, PunctuationType, StreamsBuilder, Topology, Transformer, key_value_store
from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples

pytestmark = pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")


class Summing(Transformer):
    """Forwards each record, returns another one for two of three, and reports its count in punctuations, with legacy calls."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen = context.store("seen")
        context.schedule("7ms")
        context.schedule("11ms", PunctuationType.WALL_CLOCK_TIME, self.tell, name="wall")

    def transform(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        number = (self.seen.get("all") or 0) + 1
        self.seen.put("all", number)
        self.context.forward(key, value)
        return (key, f"{value}2") if number % 3 else None

    def punctuate(self, timestamp: int) -> tuple[Any, Any] | None:
        return ("seen", f"{self.seen.get('all')} at {timestamp}")

    def tell(self, now_ms: int) -> None:
        self.context.forward("wall", f"{now_ms}", 0)
        self.context.forward("wall", f"{now_ms}", 0)


def topology(calls: list[Any]) -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("left").merge(builder.stream("right"))
    made = stream.transform(Summing, name="old", stores=[key_value_store("seen", key=str, value=int)])
    made.foreach(lambda key, value, idempotency_key: calls.append((idempotency_key, key, value)), name="effect")
    made.select_key(lambda key, _value: str(key)).repartition(name="again").foreach(
        lambda key, value, idempotency_key: calls.append((idempotency_key, key, value)), name="below"
    )
    made.to("out")
    return builder.build()


def replayed(given_epochs: list[Epoch], *, size: int, semantics: Semantics) -> tuple[Any, ...]:
    calls: list[Any] = []
    replay = LocalReplay(topology(calls), partitions=2, semantics=semantics)
    for start in range(0, len(given_epochs), size):
        replay.run(given_epochs[start : start + size])
    return sorted(calls, key=repr), [key for key, *_ in calls], replay.sent, replay.checkpoints(), replay.metrics


@given(epochs(("left", "right")), st.sampled_from(["max", "min"]), st.integers(1, 3))
@examples(60)
def test_cuts_change_nothing(given_epochs: list[Epoch], stream_time: str, size: int) -> None:
    semantics = Semantics(stream_time=stream_time)
    whole = replayed(given_epochs, size=len(given_epochs), semantics=semantics)
    cut = replayed(given_epochs, size=size, semantics=semantics)
    assert (cut[0], *cut[2:]) == (whole[0], *whole[2:])
    keys = whole[1]
    assert len(keys) == len(set(keys)), "each call has a distinct idempotency key"
