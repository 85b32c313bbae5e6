"""Sources that have changed since they were landed: files and Delta tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.bad_input.cases import Case
from tests.bad_input.scene import FEED, Bench, hour

_SCHEMA = pa.schema([("user", pa.string()), ("t", pa.int64()), ("got", pa.int64()), ("x", pa.int64())])
_AGAIN = "--new-generation"


def table_of(bench: Bench) -> str:
    """Return the path of the Delta source."""
    return str(bench.warehouse / "raw" / "events")


def _append(bench: Bench, number: int, mode: Any = "append") -> None:
    write_deltalake(table_of(bench), pa.Table.from_pylist(hour(number), schema=_SCHEMA), mode=mode)


def _delta(change: Callable[[Bench], object]) -> Callable[[Bench], None]:
    """Land two versions of a Delta table as a feed, then change the table."""

    def given(bench: Bench) -> None:
        _append(bench, 0)
        _append(bench, 1)
        source = "{table: raw.events}"
        bench.write(
            "conf/feeds/other.yaml",
            FEED.replace("feed: activity", "feed: other").replace("{path: raw, format: parquet}", source),
        )
        answer = bench.run("land", "other")
        assert answer.code == 0, answer.err
        change(bench)

    return given


def _rewritten(bench: Bench) -> DeltaTable:
    shutil.rmtree(table_of(bench))
    _append(bench, 0)
    _append(bench, 1)
    return DeltaTable(table_of(bench))


def _vacuumed(bench: Bench) -> None:
    _append(bench, 2)
    table = DeltaTable(table_of(bench))
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def _cleaned(bench: Bench) -> None:
    for _ in range(3):
        _append(bench, 2)
    table = DeltaTable(table_of(bench))
    table.create_checkpoint()
    for path in Path(table_of(bench), "_delta_log").glob("*[0-4].json"):
        path.unlink()


def _restored(bench: Bench) -> None:
    DeltaTable(table_of(bench)).restore(0)


def _rolled_back(bench: Bench) -> None:
    Path(table_of(bench), "_delta_log", f"{1:020}.json").unlink()


def _log_is_text(bench: Bench) -> None:
    _append(bench, 2)
    Path(table_of(bench), "_delta_log", f"{2:020}.json").write_text("no JSON")


def _optimized(bench: Bench) -> None:
    _append(bench, 2)
    DeltaTable(table_of(bench)).optimize.compact()


def _file(change: Callable[[Path], object]) -> Callable[[Bench], object]:
    return lambda bench: change(bench.root / "raw" / "h0.parquet") and None


def _table(name: str, code: int, says: str, change: Callable[[Bench], object]) -> Case:
    return Case(name, "land other", code, (says, _AGAIN) if code else says, _delta(change), goes_on=False)


def _named(name: str, code: int, source: str, *says: str) -> Case:
    """Land another feed with a missing source."""
    feed = FEED.replace("feed: activity", "feed: other").replace("{path: raw, format: parquet}", source)
    if "job:" in source:
        feed = feed.replace(", arrived_at: got", "")
    return Case(name, "land other", code, says, lambda bench: bench.write("conf/feeds/other.yaml", feed))


CASES = [
    Case(
        "a landed file is missing",
        "land activity",
        66,
        ("the landed file h0.parquet is gone", _AGAIN),
        _file(Path.unlink),
    ),
    Case(
        "a file of the second landing is missing",
        "land activity",
        66,
        "`rewindow land activity --new-generation`. With `--keep 1`, landings up to 1 stay as they are [landed-file-changed]",
        lambda bench: (bench.root / "raw/h1.parquet").unlink(),
    ),
    Case(
        "more landings are to be kept than there are",
        "land activity --new-generation --keep 3",
        78,
        "--keep 3: feed activity has 2 landings, so it can keep 1 to 2",
    ),
    Case(
        "a landed file has other content",
        "land activity",
        66,
        ("has changed", "Restore it"),
        lambda bench: bench.rows("h0", hour(5)),
    ),
    Case(
        "a landed file is renamed",
        "land activity",
        66,
        ("the landed file h0.parquet is gone; h00.parquet has its content, so it was renamed: rename it back", _AGAIN),
        _file(lambda path: path.rename(path.with_name("h00.parquet"))),
    ),
    Case(
        "a landed file is there under two names",
        "land activity",
        66,
        ("h00.parquet has the same content as h0.parquet", "Remove h00.parquet, because h0.parquet is landed"),
        _file(lambda path: shutil.copy2(path, path.with_name("h00.parquet"))),
    ),
    Case(
        "a landed file is cut short",
        "land activity",
        66,
        ("has changed", _AGAIN),
        _file(lambda path: path.write_bytes(path.read_bytes()[:-7])),
    ),
    Case(
        "two landed files are swapped",
        "land activity",
        66,
        ("has changed", _AGAIN),
        _file(
            lambda path: (
                path.rename(path.with_name("_")),
                path.with_name("h1.parquet").rename(path),
                path.with_name("_").rename(path.with_name("h1.parquet")),
            )
        ),
    ),
    Case(
        "the source's folder is missing",
        "land activity",
        66,
        ("has no files at", "fix `path:`"),
        lambda bench: shutil.rmtree(bench.root / "raw"),
    ),
    Case(
        "the feed was never landed",
        "run counts",
        66,
        ("was never landed", "`rewindow land activity` first"),
        lambda bench: shutil.rmtree(bench.warehouse / "rewindow/landings"),
        goes_on=True,
    ),
    Case(
        "another key under the same feed",
        "land activity",
        66,
        ("key", _AGAIN),
        lambda bench: bench.edit("conf/feeds/activity.yaml", "key: user", "key: x"),
    ),
    Case(
        "other partitions under the same feed",
        "land activity",
        66,
        ("partitions: 2 -> 3", _AGAIN),
        lambda bench: bench.edit("conf/feeds/activity.yaml", "partitions: 2", "partitions: 3"),
    ),
    Case(
        "another source under the same feed",
        "land activity",
        66,
        ('logs.events.source.name: "raw" -> "row"', "the source row has no files at", "fix `path:`"),
        lambda bench: bench.edit("conf/feeds/activity.yaml", "path: raw", "path: row"),
    ),
    _table("a table that was overwritten", 65, "changed or deleted rows", lambda b: _append(b, 2, "overwrite")),
    _table(
        "a table with deleted rows",
        65,
        "changed or deleted rows",
        lambda b: DeltaTable(table_of(b)).delete("user = 'ann'"),
    ),
    _table("a table with all rows deleted", 65, "changed or deleted rows", lambda b: DeltaTable(table_of(b)).delete()),
    _table(
        "a table with changed rows",
        65,
        "changed or deleted rows",
        lambda b: DeltaTable(table_of(b)).update({"x": "x + 1"}),
    ),
    _table("a table that was restored", 66, "is a RESTORE", _restored),
    _table("a table that went back", 66, "went back from version 1 to 0", _rolled_back),
    _table("a table that was made anew", 66, "was dropped and created again", _rewritten),
    _table("a table that was optimized", 0, "12 records", _optimized),
    _table("a table that was vacuumed too early", 66, "deleted by VACUUM", _vacuumed),
    _table("a table whose log was cleaned too early", 66, "was cleaned out of its Delta log", _cleaned),
    Case(
        "a table that is missing",
        "land other",
        66,
        ("raw.events", "fix `source:`"),
        _delta(lambda b: shutil.rmtree(table_of(b))),
        goes_on=False,
    ),
    Case(
        "a table whose log is no JSON",
        "land other",
        74,
        ("cannot be read", "from a copy"),
        _delta(_log_is_text),
        goes_on=False,
    ),
    _named("an unknown table", 66, "{table: raw.nothing}", "raw.nothing", "fix `source:`"),
    _named("an unknown job", 66, "{job: nobody, output: x}", "`rewindow run nobody` first"),
    _named("an unknown output", 66, "{job: counts, output: x}", "has no output 'x'", "it has totals"),
]
