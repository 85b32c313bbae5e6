"""Files that Spark's workers read (of a log, a source or a Delta table), corrupted or with another schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bad_input import scene
from tests.bad_input.cases import Case
from tests.bad_input.files import HARMS
from tests.bad_input.scene import Bench
from tests.bad_input.workers import TABLE


def _harmed(pattern: str, harm: Callable[[list[Path]], None]) -> Callable[[Bench], None]:
    return lambda bench: harm(sorted(bench.root.glob(pattern), key=lambda path: path.stat().st_mtime_ns))


def _corrupted(
    what: str, pattern: str, command: str, code: int, *says: str, without: tuple[str, ...] = ()
) -> list[Case]:
    return [
        Case(f"{what} {how}", command, code, says, _harmed(pattern, harm))
        for how, harm in HARMS.items()
        if how not in without
    ]


_LOG = "warehouse/logs/activity/events/*/*/*.parquet"
LOGS = _corrupted("a log's file", _LOG, "run counts", 74, "Restore the file")
_UNSEEN = ("with a flipped bit", "that is missing", "swapped with another")
"""Kinds of corruption that cannot be noticed, because source files have no checksums and new files are not known yet."""
SOURCES = [
    *_corrupted("a new file", "raw/h2.parquet", "land activity", 74, without=_UNSEEN),
    *_corrupted("a table's new file", f"warehouse/{TABLE}/*.parquet", "land other", 74, without=_UNSEEN),
    Case(
        "a table's new file that is missing",
        "land other",
        66,
        ("Path does not exist", "restore it"),
        _harmed(f"warehouse/{TABLE}/*.parquet", HARMS["that is missing"]),
    ),
]


def _changed(name: str, says: tuple[str, ...], change: Callable[[Path], object]) -> Case:
    return Case(name, "land activity", 66, says, lambda bench: change(bench.root / "raw" / "h2.parquet") and None)


_TEXT_AGAIN = "`rewindow land text --new-generation"
CSVS = {
    "a new CSV file without a column": (
        "user,t",
        ("1.csv has no x, which is landed", "`optional: [x]` to land null"),
    ),
    "a new CSV file with one column more": (
        "user,t,y,x",
        ("1.csv has the field y", "`ignore: [y]`", _TEXT_AGAIN),
    ),
    "a new CSV file with another name": (
        "person,t,x",
        ("was user renamed?", "user is the log's key"),
    ),
}


def _csv(name: str, header: str, says: tuple[str, ...]) -> Case:
    """Land a feed from a CSV file, and give the next file another header."""

    def given(bench: Bench) -> None:
        feed = scene.FEED.replace("feed: activity", "feed: text").replace(
            "path: raw, format: parquet", "path: text, format: csv"
        )
        bench.write("conf/feeds/text.yaml", feed.replace(", arrived_at: got", ""))
        rows = scene.hour(0)
        for number, columns in enumerate(("user,t,x", header)):
            lines = [columns, *(",".join(str(row.get(c, 7)) for c in columns.split(",")) for row in rows)]
            bench.write(f"text/{number}.csv", "\n".join(lines) + "\n")
            if number == 0:
                answer = bench.run("land", "text")
                assert answer.code == 0, answer.err

    return Case(name, "land text", 66, says, given)


def _with(column: str, kind: pa.DataType | None, new: str | None = None) -> Callable[[Path], None]:
    """Return a function that changes the type or name of a file's column, or removes it."""

    def change(path: Path) -> None:
        rows = pq.read_table(path)
        index = rows.schema.get_field_index(column)
        values = rows[column].cast(kind) if kind is not None else rows[column]
        rows = rows.remove_column(index)
        pq.write_table(rows if new is None else rows.add_column(index, new, values), path)

    return change


_AGAIN = "`rewindow land activity --new-generation`"
_REMOVE = "Nothing was landed. Fix the file, or remove it ["
SCHEMAS = [
    _changed(
        "a new file without the key", ("h2.parquet has no user,", "user is the log's key", _REMOVE), _with("user", None)
    ),
    _changed("a new file without the time", ("has no t,", "t is the log's timestamp", _REMOVE), _with("t", None)),
    _changed(
        "a new file without arrivals", ("has no got,", "got is the log's `arrived_at`", _REMOVE), _with("got", None)
    ),
    _changed(
        "a new file whose key has another name",
        ("It has person, which", "was user renamed", _REMOVE),
        _with("user", None, "person"),
    ),
    _changed("a new file without a value's column", ("has no x,", _AGAIN), _with("x", None)),
    _changed(
        "a new file with text for numbers",
        ("h2.parquet stores x as STRING, but the log reads BIGINT", _AGAIN),
        _with("x", pa.string(), "x"),
    ),
    _changed(
        "a new file with text for times",
        ("h2.parquet stores t as STRING, but the log reads BIGINT", _AGAIN),
        _with("t", pa.string(), "t"),
    ),
    _changed(
        "a new file with fractions for numbers",
        (
            "h2.parquet stores x as DOUBLE, but the log reads BIGINT",
            'unless they have its nullable type, `astype("Int64")`. If all',
        ),
        _with("x", pa.float64(), "x"),
    ),
    *(_csv(name, header, says) for name, (header, says) in CSVS.items()),
]
