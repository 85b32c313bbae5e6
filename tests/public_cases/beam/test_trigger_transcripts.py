"""Beam's trigger transcripts on rewindow: the rows of each window are its panes.

A watermark of a transcript is that of a landing, with `stream_time_from: watermark`. A window with one pane has one row, from a
suppress or from emit-on-close. A window with early or late panes has a row for each element, and the newest row is the pane.
`../README.md` lists all transcripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from rewindow import Record
from rewindow.streams.settings import Semantics
from rewindow.testing import TopologyTestDriver, Transcript, check, load
from tests.public_cases.beam.pane_rows import bounds, build_topology
from tests.public_cases.beam.published_panes import CASES, COLLECTED, Elements, Pane, Published, Watermark

PLAYED = [
    (name, rows) for name, case in CASES.items() for rows in (["final", "on_close"] if case.final else ["updates"])
]


def panes_of(rows: Sequence[Record], case: Published) -> list[Pane]:
    """Return the newest row of each window as a pane, by window. A window with one pane has only one row."""
    panes = [Pane(*bounds(row.key.window, case.windows), row.value, row.timestamp) for row in rows]
    newest = {pane.first: pane for pane in panes}
    assert not case.final or len(newest) == len(panes)
    return sorted(newest.values())


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize(("name", "rows"), PLAYED)
def test_the_rows_of_a_window_are_its_panes(name: str, rows: str, *, cut: bool) -> None:
    case = CASES[name]
    build = partial(build_topology, case.windows, rows, case.time, f"{case.lateness}ms")
    driver = TopologyTestDriver(build, semantics=Semantics(stream_time_from="watermark"))
    for step in case.steps:
        if cut:
            driver.cut()
        if isinstance(step, Elements):
            driver.pipe_all([("elements", "k", time, time) for time in step.times])
        elif isinstance(step, Watermark):
            driver.advance_watermark(step.time)
        else:
            sent = panes_of(driver.read("panes-sent"), case)
            for pane, published in zip(sent, step.panes, strict=True):
                assert pane == published._replace(time=pane.time if published.time is None else published.time)
    assert driver.read("panes-sent") == []


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("transcript", load(Path(__file__).with_name("rejected.yaml")), ids=str)
def test_a_wrong_transcript_is_rejected(transcript: Transcript, *, cut: bool) -> None:
    check(transcript, cut=cut)


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_a_window_leaves_the_store_after_its_lateness(*, cut: bool) -> None:
    driver = TopologyTestDriver(partial(build_topology, rows="updates", grace=f"{COLLECTED.lateness}ms"))
    driver.pipe_all([("elements", "k", time, time) for time in COLLECTED.elements])
    if cut:
        driver.cut()
    kept = {bounds(key.window, "fixed") for key in driver.store("panes")}
    assert COLLECTED.present in kept
    assert COLLECTED.absent not in kept
