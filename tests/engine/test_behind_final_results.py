"""L4 behind final results: functions, tables and repartitions get what record execution gives them, in the same order."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import assume, given
from hypothesis import strategies as st

from rewindow import Count, KStream, Max, Mean, SessionWindows, Sum, TimeWindows, Windowed, until_window_closes
from rewindow.contracts.tasks import Execution, LogFile
from rewindow.engine.worker import batch_size
from rewindow.engine.worker.vectorized.choose_execution import describe_execution
from rewindow.errors import DataError
from tests.engine.executions import Case, assert_equal, logs, write_log
from tests.engine.stages import Stages, drawn_runs, replay_stages
from tests.engine.test_execution_equality import cases
from tests.properties.effort import examples

AGGREGATES = st.sampled_from([Count(), Sum("whole"), Max("whole"), Mean("real"), Max("real")])


def text(value: Any) -> str:
    return str(value)


def by_start(of: Windowed, value: Any) -> tuple[int, str]:
    return of.window.start_ms, f"{of.key} {value}"


def by_number(of: Windowed, value: Any) -> tuple[int | None, str]:
    """Return no key now and then: a repartition drops such records, and counts them."""
    number = len(str(value)) % 4
    return number or None, f"{of.window.end_ms}"


def twice_or_never(of: Windowed, value: Any) -> list[tuple[int, str]]:
    return [(of.window.start_ms % 5, str(value))] * (of.window.start_ms % 3)


def failing(of: Windowed, value: Any) -> tuple[int, str]:
    if of.window.start_ms % 7 == 3:
        raise ValueError("a window that the code did not expect")
    return of.window.start_ms, str(value)


def of_two_types(of: Windowed, value: Any) -> tuple[int, Any]:
    return of.window.start_ms, str(value) if of.window.start_ms % 2 else 1


CHAINS = [
    lambda finals: finals.filter(lambda of, _: of.window.start_ms % 2 == 0),
    lambda finals: finals.where("timestamp >= 22"),
    lambda finals: finals.map_values(text, value=str),
    lambda finals: finals.map(by_start, key=int, value=str).where("key >= 20"),
    lambda finals: finals.map(by_number, key=int, value=str).filter_not(lambda key, _: key == 2),
    lambda finals: finals.flat_map(twice_or_never, key=int, value=str).peek(lambda key, value: (key, value)),
    lambda finals: finals.select_key(lambda of, _: str(of.key), key=str).map_values(text, value=str),
    lambda finals: finals.map(failing, key=int, value=str),
    lambda finals: finals.map(of_two_types, key=int, value=str),
]
WINDOWS = [TimeWindows.of("4ms", grace="3ms"), TimeWindows.of("6ms", grace="0ms").advance_by("2ms")]
WINDOWS += [SessionWindows.of("3ms", grace="2ms")]


def counted(stream: KStream, windows: Any) -> KStream:
    """Count the final results in windows of their own, behind a repartition."""
    table = stream.group_by_key().windowed_by(windows).count(store="of-finals")
    return table.suppress(until_window_closes(), name="closed-finals").to_stream()


@st.composite
def followed(draw: Any, *, fails: bool = False) -> Case:
    """Generate a job whose final results pass through functions to a table, or to windows of another sub-topology."""
    chain = draw(st.sampled_from(CHAINS[-2:] if fails else CHAINS[:-2]))
    windows = None if fails else draw(st.sampled_from([None, *WINDOWS]))

    def behind(finals: KStream) -> None:
        stream = chain(finals)
        if windows is not None:
            stream = counted(stream.repartition(name="again"), windows)
        stream.to("results")

    return draw(cases(sessions=draw(st.booleans()), aggregates=AGGREGATES, behind=behind))


@examples(60)
@given(case=st.booleans().flatmap(lambda fails: followed(fails=fails)), data=st.data())
def test_both_execution_modes_write_the_same_behind_final_results(case: Case, data: st.DataObject) -> None:
    """They fail with the same message, too."""
    cuts, modes = drawn_runs(len(case.epochs), data)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        log = write_log(case, root / "log")
        expected = _outcome(case, log, root / "records", cuts, [Execution.RECORD] * len(cuts))
        with patch.object(batch_size, "read_rows", return_value=data.draw(st.sampled_from([1, 3, 100]))):
            found = _outcome(case, log, root / "columns", cuts, modes)
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected
            return
        for task, written in expected.items():
            assert_equal(found[task], written)


def _outcome(
    case: Case, log: tuple[LogFile, ...], root: Path, cuts: list[tuple[int, int]], modes: list[Execution]
) -> Stages | str:
    try:
        return replay_stages(case, log, root, cuts, modes)
    except DataError as error:
        return str(error)


@given(case=followed())
@examples(10)
def test_explain_says_that_windows_with_functions_behind_them_are_vectorized(case: Case) -> None:
    first, *behind = [
        describe_execution(Execution.AUTO, case.topology, part, logs(case), one_by_one="")
        for part in case.topology.sub_topologies()
    ]
    assume("with another type" not in first)  # `select` has given a column's name to one of another type
    assert first.startswith("vectorized execution")
    for how in behind:
        assert how.startswith("vectorized execution") or "are windows: select_key what to group by" in how
