"""The test driver equals a replay: records piped in one call give the same results as an epoch."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from rewindow.streams.nodes import SourceNode
from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch, LocalReplay, TopologyTestDriver
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples
from tests.properties.topologies import TOPICS, build, plans


def _is_repartition(source: SourceNode) -> bool:
    return source.is_internal and not source.is_global


@given(plans(), epochs(TOPICS), st.sampled_from(["records", "watermark"]), st.sampled_from(["open", "sealed"]))
@examples(80)
def test_piped_or_landed(steps: list[tuple[Any, ...]], given_epochs: list[Epoch], time_from: str, end: str) -> None:
    parts = build(steps).sub_topologies()
    # Only a replay orders several internal topics of one task among each other (D21, L1).
    assume(all(len(part.sources) == 1 or not any(map(_is_repartition, part.sources)) for part in parts))
    # In the final run, a wall-clock punctuation is sorted by its due time, before what the watermark sends (D21).
    assume(end == "open" or time_from == "records")
    semantics = Semantics(stream_time_from=time_from)
    replay = LocalReplay(build(steps), semantics=semantics)
    driver = TopologyTestDriver(build(steps), semantics=semantics, max_task_idle_ms=-1)
    for epoch in given_epochs:
        replay.run([epoch])
        driver.pipe_all(record for record in epoch.records if record[0] in driver.inputs)
        if epoch.watermark_ms >= 0:
            driver.advance_watermark(epoch.watermark_ms)
        driver.cut()
    if end == "sealed":
        replay.run([Epoch(watermark_ms=given_epochs[-1].watermark_ms, is_final=True)])
        driver.finish()
    replayed = defaultdict(list)
    for sent in replay.sent:
        replayed[sent.topic].append(sent.record)
    driven = defaultdict(list)
    for topic, record in driver.read_all():
        driven[topic].append(record)
    assert driven == replayed
