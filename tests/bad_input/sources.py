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
from tests.refusals import containing

_SCHEMA = pa.schema([("user", pa.string()), ("t", pa.int64()), ("got", pa.int64()), ("x", pa.int64())])


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


def _cleaned(bench: Bench) -> None:
    for _ in range(3):
        _append(bench, 2)
    table = DeltaTable(table_of(bench))
    table.create_checkpoint()
    for path in Path(table_of(bench), "_delta_log").glob("*[0-4].json"):
        path.unlink()


def _rolled_back(bench: Bench) -> None:
    Path(table_of(bench), "_delta_log", f"{1:020}.json").unlink()


def _log_is_text(bench: Bench) -> None:
    _append(bench, 2)
    Path(table_of(bench), "_delta_log", f"{2:020}.json").write_text("no JSON")


def _file(change: Callable[[Path], object]) -> Callable[[Bench], object]:
    return lambda bench: change(bench.root / "raw" / "h0.parquet")


def _landed(name: str, change: Callable[[Bench], object], code: str, /, **facts: object) -> Case:
    return Case(name, "land activity", code, facts, change)


def _table(name: str, change: Callable[[Bench], object], code: str, /, **facts: object) -> Case:
    return Case(f"a table {name}", "land other", code, facts, _delta(change))


def _named(name: str, source: str, code: str, /, **facts: object) -> Case:
    """Land another feed with a missing source."""
    feed = FEED.replace("feed: activity", "feed: other").replace("{path: raw, format: parquet}", source)
    if "job:" in source:
        feed = feed.replace(", arrived_at: got", "")
    return Case(name, "land other", code, facts, lambda bench: bench.write("conf/feeds/other.yaml", feed))


def _feed(old: str, new: str) -> Callable[[Bench], None]:
    return lambda bench: bench.edit("conf/feeds/activity.yaml", old, new)


CASES = [
    _landed("a landed file is missing", _file(Path.unlink), "landed-file-changed", file="h0.parquet", what="is gone"),
    _landed(
        "a landed file has other content",
        lambda bench: bench.rows("h0", hour(5)),
        "landed-file-changed",
        what="has changed",
    ),
    _landed(
        "a landed file is renamed",
        _file(lambda path: path.rename(path.with_name("h00.parquet"))),
        "landed-file-changed",
        what=containing("h00.parquet has its content"),
    ),
    _landed(
        "a landed file is there under two names",
        _file(lambda path: shutil.copy2(path, path.with_name("h00.parquet"))),
        "file-content-repeated",
        file="h00.parquet",
        other="h0.parquet",
    ),
    _landed("the source's folder is missing", lambda b: shutil.rmtree(b.root / "raw"), "source-without-files"),
    _landed("another key", _feed("key: user", "key: x"), "feed-definition-changed", keep=""),
    _landed("other partitions", _feed("partitions: 2", "partitions: 3"), "feed-definition-changed"),
    _landed("another source", _feed("path: raw", "path: row"), "feed-definition-unusable"),
    Case(
        "more landings are to be kept than there are",
        "land activity --new-generation --keep 3",
        "kept-landings-out-of-range",
        {"landings": 2},
    ),
    Case(
        "the feed was never landed",
        "run counts",
        "feed-never-landed",
        {"feed": "activity"},
        lambda bench: shutil.rmtree(bench.warehouse / "rewindow/landings"),
    ),
    _table("that was overwritten", lambda b: _append(b, 2, "overwrite"), "source-rows-changed", version=2),
    _table("with deleted rows", lambda b: DeltaTable(table_of(b)).delete(), "source-rows-changed", operation="DELETE"),
    _table("that was restored", lambda b: DeltaTable(table_of(b)).restore(0), "source-table-restored", version=2),
    _table("that went back", _rolled_back, "source-table-replaced", change="went back from version 1 to 0"),
    _table("that was made anew", _rewritten, "source-table-replaced", change="was dropped and created again"),
    _table("whose log was cleaned too early", _cleaned, "source-version-cleaned", version=2),
    _table("that is missing", lambda b: shutil.rmtree(table_of(b)), "source-table-missing", source="raw.events"),
    _table("whose log is no JSON", _log_is_text, "delta-log-commit-broken", version=2),
    _named("an unknown job", "{job: nobody, output: x}", "job-never-run", job="nobody"),
    _named("an unknown output", "{job: counts, output: x}", "job-output-unknown", output="x", outputs="totals"),
]
