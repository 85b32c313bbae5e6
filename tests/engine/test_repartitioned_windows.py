"""L4 behind a repartition: windows over new keys are vectorized, and give what record execution gives."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from hypothesis import assume, given
from hypothesis import strategies as st

from rewindow import Processor, Record
from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import (
    Execution,
    InternalFile,
    JobCode,
    LogFile,
    LogSlice,
    RunIdentity,
    StagingArea,
    SubTopologyWork,
    TaskWork,
)
from rewindow.engine.worker import batch_size
from rewindow.engine.worker.local import LocalEngine
from rewindow.engine.worker.record_execution import run_task
from rewindow.engine.worker.vectorized.planner import describe_execution
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.processor_context import ProcessorContext
from rewindow.streams.punctuation import PunctuationType
from tests.engine.executions import Case, Written, assert_equal, logs, write_log
from tests.engine.prefixes import Made, made
from tests.engine.test_execution_equality import cases
from tests.properties.effort import examples

PARTITIONS = 2


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
    number = len(case.epochs)
    inner = sorted(data.draw(st.sets(st.integers(1, max(1, number - 1)), max_size=2))) if number > 1 else []
    cuts = list(pairwise([0, *inner, number]))
    modes = data.draw(
        st.lists(st.sampled_from([Execution.AUTO, Execution.RECORD]), min_size=len(cuts), max_size=len(cuts))
    )
    assume(Execution.AUTO in modes)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        log = write_log(case, root / "log")
        expected = _replay(case, log, root / "records", cuts, [Execution.RECORD] * len(cuts))
        with patch.object(batch_size, "read_rows", return_value=data.draw(st.sampled_from([1, 3, 100]))):
            found = _replay(case, log, root / "columns", cuts, modes)
        for partition in range(PARTITIONS):
            assert_equal(found[partition], expected[partition])


@given(case=repartitioned())
@examples(5)
def test_explain_says_that_windows_behind_a_new_key_are_vectorized(case: Case) -> None:
    above, *_, below = case.topology.sub_topologies()
    how = [
        describe_execution(Execution.AUTO, case.topology, part, logs(case), keeps_dropped=False)
        for part in (above, below)
    ]
    assert how[0].startswith("record execution")
    assert how[1].startswith("vectorized execution")


def _replay(
    case: Case, log: tuple[LogFile, ...], root: Path, ranges: list[tuple[int, int]], modes: list[Execution]
) -> list[list[Written]]:
    """Replay run by run; two upstream tasks read the same log. Return what each downstream task wrote."""
    states: dict[tuple[int, int], Any] = {}
    stores: dict[tuple[int, int], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    written: list[list[Written]] = [[] for _ in range(PARTITIONS)]
    for run, ((first, end), execution) in enumerate(zip(ranges, modes, strict=True), start=1):
        sent: list[tuple[int, str, Any]] = []
        for part in case.topology.sub_topologies():
            work = _work(case, root / str(run), run, (first, end), part, execution)
            for partition in range(PARTITIONS):
                topic = part.sources[0].topic
                slices = {} if part.index else {topic: LogSlice(log, case.bounds[first:end])}
                files = tuple(InternalFile(path, upstream) for upstream, path, to in sent if to == partition)
                state = states.get((part.index, partition))
                restored = TaskState.from_json(json.loads(json.dumps(state))) if state else None
                held = {store.name: tuple(stores[part.index, partition][store.name]) for store in part.stores}
                report = run_task(
                    work, TaskWork(partition, slices, {topic: files} if part.index else {}, restored, held)
                )
                states[part.index, partition] = report.state
                paths = _paths(work, report)
                for target, path, to in paths:
                    kind, _, name = target.partition("/")
                    if kind == "changelog":
                        stores[part.index, partition][name].append(path)
                    elif kind == "internal":
                        sent.append((partition, path, to))
                if part.index:
                    done = Written(report)
                    for target, path, _ in paths:
                        done.files.setdefault(target, []).append(path)
                    written[partition].append(done)
    return written


def _paths(work: SubTopologyWork, report: TaskReport) -> list[tuple[str, str, int]]:
    return [
        (file.target, f"{work.staging.roots[file.target]}/{file.path}", int(file.partition_values.get("_partition", 0)))
        for file in report.files
    ]


def _work(
    case: Case, root: Path, run: int, epochs: tuple[int, int], part: Any, execution: Execution
) -> SubTopologyWork:
    targets = [f"{'internal' if sink.is_internal else 'output'}/{sink.topic}" for sink in part.sinks]
    targets += [f"changelog/{store.name}" for store in part.stores]
    work = SubTopologyWork(
        sub_topology=part.index,
        identity=RunIdentity("job", run, f"run{run}", case.topology.fingerprint()),
        code=JobCode(lambda: case.topology, lambda: logs(case), case.semantics),
        epochs=case.epochs[slice(*epochs)],
        tasks=(),
        staging=StagingArea({target: str(root / target) for target in targets}, PARTITIONS),
    )
    return LocalEngine(execution).with_execution(work)
