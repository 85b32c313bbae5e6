"""Reports about Delta tables as sources: values of partitions, and types."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.refusals import refused
from tests.reported.report import Files, Landing, Report, github
from tests.text.odd_case import utc


def appended(table: Mapping[str, Any], **options: Any) -> Files:
    """Return a function that appends rows to the table `raw.events`."""

    def write(root: Path) -> None:
        write_deltalake(f"{root}/w/raw/events", pa.table(dict(table)), mode="append", **options)

    return write


def delta(name: str, *calls: Files, rows: tuple[tuple[Any, ...], ...] = (), **more: Any) -> Landing:
    """Return the landings of the table `raw.events`, one after each call."""
    return Landing(
        name, "delta", calls, rows=rows, source={"table": "raw.events", "path": None, "format": None}, **more
    )


def partitioned(
    name: str, *values: Any, kind: Any = None, landed: tuple[Any, ...] | None = None, column: str = "x"
) -> Landing:
    """Return the landing of a table with these values of its partitions, one row for each."""
    table = {"n": pa.array(range(1, len(values) + 1)), column: pa.array(values, kind), "y": ["a"] * len(values)}
    rows = tuple(enumerate(values if landed is None else landed, start=1))
    log = {} if column == "x" else {"columns": {"x": column}}
    return delta(name, appended(table, partition_by=[column]), rows=rows, log=log)


TEN = datetime(2023, 1, 1, 1, 1, 1, tzinfo=UTC)
TEN_MS = utc("2023-01-01T01:01:01")
ONE, TWO = {"n": [1], "x": ["a"]}, {"n": [2], "x": ["b"]}


def vacuumed_log(root: Path) -> None:
    """Add a row, and a checkpoint without the commits before it."""
    appended(TWO)(root)
    DeltaTable(f"{root}/w/raw/events").create_checkpoint()


def compacted(root: Path) -> None:
    """Add a row, and compact the table."""
    appended(TWO)(root)
    DeltaTable(f"{root}/w/raw/events").optimize.compact()


def deleted(root: Path) -> None:
    """Delete a row."""
    DeltaTable(f"{root}/w/raw/events").delete("n = 1")


def overwritten(root: Path) -> None:
    """Overwrite the table with other types."""
    write_deltalake(f"{root}/w/raw/events", pa.table({"n": [1], "x": [1.5]}), mode="overwrite", schema_mode="overwrite")


REPORTS: tuple[Report, ...] = (
    github(
        "delta-io/delta-rs",
        495,
        "A partition column whose name has special characters was null in all rows.",
        "Its values are landed; `columns:` gives it a name.",
        partitioned("a per cent sign", 10, 20, column="x%20x"),
        partitioned("a blank", "a", "b", column="x y"),
        partitioned("an equals sign and a slash", "a", None, column="x=y/z"),
    ),
    github(
        "delta-io/delta-rs",
        1393,
        "Partitions whose values have blanks or special characters had no rows.",
        "Values are those of the table's log, whatever the names of the directories.",
        partitioned("a blank", "Flamingo", "Brittle Stars"),
        partitioned("characters of paths", "a/b", "50%", "50%25", "a=b", "a:b", "#", "?", "ä", "..", "a\\b", "'", '"'),
        partitioned("line breaks", "a\nb", "a"),
    ),
    github(
        "delta-io/delta-rs",
        348,
        "A table with a null among its partition values could not be read.",
        "It is null.",
        partitioned("texts", "A", None),
        partitioned("numbers", 1, None),
        partitioned("days", date(2026, 1, 5), None, kind=pa.date32(), landed=("2026-01-05", None)),
        partitioned("truth values", True, None, False),
        partitioned("texts like nulls", "null", "None", "NaN", "__HIVE_DEFAULT_PARTITION__"),
    ),
    github(
        "delta-io/delta",
        2100,
        "An empty text in a partition column became null.",
        "The format cannot tell them apart: both are null, as the page of feeds says.",
        partitioned("texts", "abc", "", None, landed=("abc", None, None)),
        partitioned("a blank is a text", "abc", " "),
    ),
    github(
        "delta-io/delta-rs",
        1777,
        "Times with a zone could not be appended, and came back without one.",
        "Both kinds are landed as milliseconds.",
        delta(
            "with a zone, in two commits",
            appended({"n": [1], "x": pa.array([TEN], pa.timestamp("us", tz="UTC"))}),
            appended({"n": [2], "x": pa.array([TEN], pa.timestamp("us", tz="UTC"))}),
            rows=((1, TEN_MS), (2, TEN_MS)),
        ),
        delta(
            "without a zone",
            appended({"n": [1], "x": pa.array([TEN.replace(tzinfo=None)], pa.timestamp("us"))}),
            rows=((1, TEN_MS),),
        ),
        delta(
            "before 1970",
            appended(
                {
                    "n": [1],
                    "x": pa.array([datetime(1969, 12, 31, 23, 59, 59, 999_500, UTC)], pa.timestamp("us", tz="UTC")),
                }
            ),
            rows=((1, -1),),
        ),
    ),
    github(
        "dlt-hub/dlt",
        971,
        "Rows at the boundary of an incremental load came twice.",
        "Each call takes the versions since the last one: a row is landed once.",
        delta(
            "one row in each commit, with equal times",
            appended(ONE),
            appended({"n": [1], "x": ["b"]}),
            rows=((1, "a"), (1, "b")),
        ),
        delta("no new commit", appended(ONE), lambda _root: None, rows=((1, "a"),)),
        delta("compacted between two calls", appended(ONE), compacted, rows=((1, "a"), (2, "b"))),
        delta("with a checkpoint between two calls", appended(ONE), vacuumed_log, rows=((1, "a"), (2, "b"))),
        delta(
            "a deletion is refused", appended(ONE), deleted, rows=((1, "a"),), refused=refused("source-rows-changed")
        ),
        delta(
            "an overwrite with another type is refused",
            appended(ONE),
            overwritten,
            rows=((1, "a"),),
            refused=refused("source-rows-changed"),
        ),
    ),
)
