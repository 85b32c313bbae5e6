"""A run restores only the rows that it can request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindow import Count, StreamsBuilder, TimeWindows, Topology, Window, Windowed
from rewindow.contracts.tasks import LogFile, LogSlice, TaskWork
from rewindow.engine.worker import changelog_reader
from rewindow.engine.worker.changelog_reader import Restore
from rewindow.engine.worker.staging import StagingTarget, stage_changes
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import LogShapes, bind_store, log_shape
from rewindow.streams.state.stores import Stamped

COLUMNS = (Column("offset", "long"), Column("timestamp", "long"), Column("user", "string"), Column("amount", "double"))
HOUR_MS = 3_600_000


def logs() -> LogShapes:
    return {"in": (log_shape(COLUMNS[2:3], is_scalar=True), log_shape(COLUMNS[3:], is_scalar=False))}


def counts(*, windowed: bool) -> Topology:
    builder = StreamsBuilder()
    groups = builder.stream("in").group_by_key()
    made = groups.windowed_by(TimeWindows.of("1h", grace="10m")) if windowed else groups
    made.aggregate({"events": Count()}, store="counts").to_stream().to("out")
    return builder.build()


def restored(
    root: Path, rows: list[tuple[object, object]], users: list[str], *, windowed: bool
) -> dict[object, object]:
    """Return the rows that a run with records of these users restores."""
    topology = counts(windowed=windowed)
    (part,) = topology.sub_topologies()
    (store,) = part.stores
    shapes = bind_store(store, logs())
    (changes,) = stage_changes(
        StagingTarget("changelog/counts", str(root), attempt="a", partition=0), shapes, rows, partition=0, run=1
    )
    log = StagingTarget("log/in", str(root), attempt="b", partition=0).buffer(COLUMNS, ["offset"], 0)
    for offset, user in enumerate(users):
        log.append((offset, 0, user, 1.0))
    files = tuple(LogFile(f"{root}/{file.path}", 0, len(users) - 1) for file in log.close())
    work = TaskWork(
        0,
        {"in": LogSlice(files, ((0, len(users)),))},
        {},
        TaskState(store_clocks={"counts": 5 * HOUR_MS}),
        {"counts": (f"{root}/{changes.path}",)},
    )
    found: Iterator[tuple[object, object]] = Restore(work, topology, part, logs()).rows(store, *shapes)
    return dict(found)


def value(events: int) -> Stamped:
    (part,) = counts(windowed=False).sub_topologies()
    shape = bind_store(part.stores[0], logs())[1]
    made: Stamped = shape.decode((events, 7))
    return made


def test_keys_without_records_are_not_restored(tmp_path: Path) -> None:
    rows: list[tuple[object, object]] = [(f"user-{n}", value(n)) for n in range(10)] + [("gone", None)]
    assert restored(tmp_path, rows, ["user-3", "new", "user-7", "user-3"], windowed=False) == {
        "user-3": value(3),
        "user-7": value(7),
    }
    assert restored(tmp_path, rows, ["gone"], windowed=False) == {"gone": None}


def test_without_records_nothing_is_read(tmp_path: Path) -> None:
    assert restored(tmp_path, [("user-1", value(1))], [], windowed=False) == {}


def test_expired_windows_are_not_restored(tmp_path: Path) -> None:
    rows: list[tuple[object, object]] = [
        (Windowed(user, Window(start, start + HOUR_MS)), value(1)) for start in (0, 5 * HOUR_MS) for user in ("a", "b")
    ]
    found = restored(tmp_path, rows, ["b"], windowed=True)
    assert [(key.key, key.window.start_ms) for key in found if isinstance(key, Windowed)] == [("b", 5 * HOUR_MS)]


def test_a_run_with_many_records_restores_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog_reader, "_KEYS_MAX", 1)
    rows: list[tuple[object, object]] = [("a", value(1)), ("b", value(2))]
    assert restored(tmp_path, rows, ["a", "c"], windowed=False) == dict(rows)
