"""L2: one run over many epochs and many runs over a few each give the same outputs, offsets, state and metrics."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow.streams.settings import Semantics, Settings
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples
from tests.properties.topologies import TOPICS, build, plans

PARTITIONS = 2
GLIDING = st.builds(
    Semantics,
    stream_time=st.sampled_from(["max", "min"]),
    stream_time_from=st.sampled_from(["records", "watermark"]),
    wall_clock=st.just("stream_time"),
)


def replayed(
    steps: list[tuple[Any, ...]],
    given_epochs: list[Epoch],
    cuts: list[int],
    semantics: Semantics,
    jumps: list[int] | None = None,
    settings: Settings | None = None,
    **varied: Any,
) -> tuple[Any, ...]:
    """Replay in runs that end at the cuts. Return everything that L2 compares."""
    replay = LocalReplay(build(steps), partitions=PARTITIONS, semantics=semantics, settings=settings)
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < len(given_epochs)}), len(given_epochs)]
    for number, (start, end) in enumerate(pairwise(bounds)):
        jump = {"wall_clock_ms": jumps[number]} if jumps else {}
        replay.run(given_epochs[start:end], **jump, **varied)
    return replay.sent, replay.checkpoints(), replay.metrics


@given(plans(), epochs(TOPICS), st.lists(st.integers(1, 4)), GLIDING, st.sampled_from(["open", "sealed"]))
@examples(150)
def test_runs_make_no_difference(
    steps: list[tuple[Any, ...]], given_epochs: list[Epoch], cuts: list[int], semantics: Semantics, end: str
) -> None:
    if end == "sealed":
        given_epochs = [*given_epochs, Epoch(watermark_ms=given_epochs[-1].watermark_ms, is_final=True)]
    whole = replayed(steps, given_epochs, [], semantics, restarts=False)
    cut = replayed(steps, given_epochs, cuts, semantics)
    for one, other in zip(whole, cut, strict=True):
        assert one == other


@given(plans(), epochs(TOPICS), st.lists(st.integers(1, 4)), st.data())
@examples(60)
def test_with_a_clock_that_jumps_at_the_end_of_runs_a_restart_makes_no_difference(
    steps: list[tuple[Any, ...]], given_epochs: list[Epoch], cuts: list[int], data: st.DataObject
) -> None:
    jumps = sorted(data.draw(st.lists(st.integers(0, 300), min_size=len(given_epochs), max_size=len(given_epochs))))
    semantics = Semantics(wall_clock="run", stream_time_from=data.draw(st.sampled_from(["records", "watermark"])))
    living = replayed(steps, given_epochs, cuts, semantics, jumps, restarts=False)
    restored = replayed(steps, given_epochs, cuts, semantics, jumps)
    for one, other in zip(living, restored, strict=True):
        assert one == other
