"""Files are read whose paths would match others if Spark took them as patterns, and no others."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.contracts.ingest import Piece
from rewindow.control.ingest.land import land
from rewindow.engine.spark.exact_paths import exact_paths, inferable_paths
from rewindow.engine.spark.ingest import SparkLandingEngine
from rewindow.errors import SourceError
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import T0, log_rows, one_log

NAMES = (
    "x1",
    "x[1]",
    "x[!2]",
    "a{b}",
    "a{b,c}",
    "ab",
    "cc",
    "c*",
    "d?",
    "dd",
    "e\\f",
    "ef",
    "g\\[1]",
    "h%5B1",
    "sub[1]/i",
    "sub1/i",
)
DIRECTORIES = ("u=a[1]/p", "u=a1/p", "u=b*/q[1]", "u=bc/q1")


def write(folder, kind, names, first=0):
    """Write a file for each name, with one row: the name is the user, and the first one is that of row ``first``."""
    for at, name in enumerate(names, first):
        file = folder / "raw" / f"{name}.{kind}"
        file.parent.mkdir(parents=True, exist_ok=True)
        row = {"user": name, "t": T0 + at, "x": at}
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist([row]), file)
        elif kind == "json":
            file.write_text(json.dumps(row))
        else:
            file.write_text(f'user,t,x\n"{name}",{row["t"]},{at}\n')


def rows(tables, *columns):
    return sorted(tuple(row[name] for name in ("x", "user", *columns)) for row in log_rows(tables))


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_spark_lands_each_file_once_whatever_its_name(spark, tmp_path, kind):
    folder = tmp_path / "p[1]"
    tables, engine = DeltaFeedTables(str(tmp_path / "w")), SparkLandingEngine(spark, project_root=str(folder))
    feed = one_log(source={"format": kind, "path": str(folder / "raw").replace("[", "[[]")})
    write(tmp_path / "p1", kind, ["of a sibling"])
    for first, names in ((0, NAMES[:1]), (1, NAMES[1:])):
        write(folder, kind, names, first)
        land(feed, tables, engine, now_ms=T0)
    assert rows(tables) == [*enumerate(NAMES)]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_spark_lands_the_columns_of_directories_whatever_their_names(spark, tmp_path, kind):
    tables, engine = DeltaFeedTables(str(tmp_path / "w")), SparkLandingEngine(spark, project_root=str(tmp_path))
    write(tmp_path, kind, DIRECTORIES)
    land(one_log(source={"format": kind, "path": str(tmp_path / "raw")}), tables, engine, now_ms=T0)
    assert rows(tables, "u") == [(at, name, name[2:].partition("/")[0]) for at, name in enumerate(DIRECTORIES)]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_columns_of_multi_line_files_are_not_inferred_from_other_files(spark, tmp_path, kind):
    write(tmp_path, kind, ["x1", "x[1]"])
    source = {"format": kind, "path": str(tmp_path / "raw"), "options": {"multiLine": "true"}}
    tables, engine = DeltaFeedTables(str(tmp_path / "w")), SparkLandingEngine(spark, project_root=str(tmp_path))
    with pytest.raises(
        SourceError, match=rf"x\[1\]\.{kind}: with `multiLine`, .* State the columns under `schema:`, or rename"
    ):
        land(one_log(source=source), tables, engine, now_ms=T0)
    land(one_log(source={**source, "schema": "user STRING, t BIGINT, x BIGINT"}), tables, engine, now_ms=T0)
    assert rows(tables) == [(0, "x1"), (1, "x[1]")]


def test_paths_become_patterns_that_match_only_them():
    assert exact_paths([Piece("/a/x[1].csv"), Piece("s3://a/e\\f {b}*?"), Piece("/a:b/c")]) == [
        "/a/x\\[1\\].csv",
        "s3://a/e\\\\f \\{b\\}\\*\\?",
        "/a:b/c",
    ]


@pytest.mark.parametrize("path", ["/raw/a:b[1].csv", "/a:b/c*.csv", "s3://a/b:c?"])
def test_a_path_that_no_pattern_can_name_is_refused(path):
    with pytest.raises(
        SourceError, match=r"Spark cannot read a file whose path has a colon .* Rename the file"
    ) as refused:
        exact_paths([Piece("/raw/x.csv"), Piece(path, name="named")])
    assert str(refused.value).startswith("named: ")
    assert refused.value.exit_code == 66


@pytest.mark.parametrize("path", ["/raw/a:b.csv", "/raw/x[1].csv", "/c*/x.csv"])
def test_a_path_is_refused_that_a_reader_of_multi_line_files_takes_as_a_pattern(path):
    pieces = [Piece("/raw/x.csv"), Piece(path)]
    assert len(inferable_paths(pieces, {"multiLine": "false"})) == 2
    with pytest.raises(SourceError, match="with `multiLine`, Spark cannot infer columns"):
        inferable_paths(pieces, {"multiline": "TRUE"})
