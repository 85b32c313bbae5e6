"""L4 behind a repartition: windows over new keys are vectorized, and give what record execution gives."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import Processor, Record
from rewindow.contracts.tasks import Execution
from rewindow.engine.worker import batch_size
from rewindow.engine.worker.vectorized.choose_execution import describe_execution
from rewindow.errors import DataError
from rewindow.streams.processor import ProcessorContext
from rewindow.streams.punctuation import PunctuationType
from tests.engine.executions import Case, assert_equal, logs, write_log
from tests.engine.prefixes import Made, made
from tests.engine.stages import drawn_runs, replay_stages
from tests.engine.test_execution_equality import cases
from tests.properties.effort import examples


class Room(NamedTuple):
    """A key of two columns."""

    note: str
    flag: bool


class Sampling(Processor):
    """Forwards each record under a new key, and one record of its own at each punctuation."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("5ms", PunctuationType.STREAM_TIME, self.sample)

    def process(self, record: Record) -> None:
        self.context.forward(Record((record.value.whole or 0) % 3, made(record.value), record.timestamp))

    def sample(self, now_ms: int) -> None:
        self.context.forward(Record(-1, Made(now_ms, 0.5, None, "sample"), now_ms))


REKEYED = [
    lambda stream: stream.map_values(made, value=Made).select_key(lambda _, value: value.note, key=str),
    lambda stream: stream.map(lambda _, value: ((value.whole or 0) % 4, made(value)), key=int, value=Made),
    lambda stream: stream.map(
        lambda _, value: (Room(value.note or "", bool(value.flag)), made(value)), key=Room, value=Made
    ),
    lambda stream: stream.flat_map(
        lambda _, value: [((value.whole or 0) > 0, made(value))] * ((value.whole or 1) % 3), key=bool, value=Made
    ),
    lambda stream: stream.map(lambda _, value: (value.note, made(value) if value.flag else None), key=str, value=Made),
    lambda stream: stream.process(Sampling, name="sampling", key=int, value=Made),
]
AFTER = ["whole >= 0", "not flag", lambda stream: stream.filter(lambda _, value: value is None or value.real != 7.0)]


@st.composite
def repartitioned(draw: Any) -> Case:
    """Generate a job that groups by a new key."""
    after = draw(st.lists(st.sampled_from(AFTER), max_size=1))
    prefix = [
        draw(st.sampled_from(REKEYED)),
        *([lambda stream: stream.repartition(name="again"), *after] if after else []),
    ]
    with patch("tests.engine.test_execution_equality.chains_of_functions", lambda: st.just(prefix)):
        return draw(cases(sessions=draw(st.booleans()), functions=True))


@examples(40)
@given(case=repartitioned(), data=st.data())
def test_both_execution_modes_write_the_same_behind_a_repartition(case: Case, data: st.DataObject) -> None:
    cuts, modes = drawn_runs(len(case.epochs), data)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        log = write_log(case, root / "log")
        with patch.object(batch_size, "read_rows", return_value=data.draw(st.sampled_from([1, 3, 100]))):
            try:
                expected = replay_stages(case, log, root / "records", cuts, [Execution.RECORD] * len(cuts))
            except DataError:  # the sums of some drawn numbers are no longs
                with pytest.raises(DataError, match="does not fit the type long"):
                    replay_stages(case, log, root / "columns", cuts, modes)
                return
            found = replay_stages(case, log, root / "columns", cuts, modes)
        for task, written in expected.items():
            assert_equal(found[task], written)


@given(case=repartitioned())
@examples(5)
def test_explain_says_that_windows_behind_a_new_key_are_vectorized(case: Case) -> None:
    above, *_, below = case.topology.sub_topologies()
    how = [
        describe_execution(Execution.AUTO, case.topology, part, logs(case), one_by_one="") for part in (above, below)
    ]
    assert how[0].startswith("record execution")
    assert how[1].startswith("vectorized execution")
