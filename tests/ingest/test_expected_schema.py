"""What is known of a log's columns before it is landed. A type that is not certain fits everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.contracts.ingest import LogSpec, SourceSpec
from rewindow.engine.worker.landing.arrow_landing import expected_schema
from rewindow.engine.worker.source_files import look_at_files
from rewindow.errors import ConfigError
from tests.refusals import refused


def expected(
    path: Path, kind: str, *, options: dict[str, str] | None = None, schema: str | None = None, key: str = "k"
) -> dict[str, Any] | None:
    source = SourceSpec(kind, str(path), "raw", options or {}, schema)
    spec = LogSpec("t", source, (key,), True, None, False, "at")
    found = expected_schema(spec, look_at_files(source, None))
    return None if found is None else {field["name"]: field["type"] for field in json.loads(found)["fields"]}


@pytest.mark.parametrize(
    ("ddl", "types"),
    [
        ("k string, n INT, d DECIMAL(10, 2)", {"k": "string", "n": "integer", "d": "decimal(10,2)"}),
        ("`a b` bigint, t timestamp", {"a b": "long", "t": "timestamp"}),
        ("k varchar(10), s struct<a: int, b: string>, m map<string,int>, p json", {"k": "string", "p": "json"}),
        ("d decimal, f real", {"d": "decimal(10,0)", "f": "float"}),
    ],
)
def test_a_declared_schema_tells_the_types(ddl: str, types: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": 1}\n')
    found = expected(tmp_path, "json", schema=ddl) or {}
    assert {name: kind for name, kind in found.items() if isinstance(kind, str)} == types


def test_the_rows_of_a_csv_file_tell_its_types(tmp_path: Path) -> None:
    rows = "k,n,x,s,at,e,b\n1,1,1.5,de,2026-11-01 08:00:00,,true\n2,2,3,7,2026-11-01 08:00:00,,false\n"
    (tmp_path / "a.csv").write_text(rows)
    types = {"k": "long", "n": "long", "x": "double", "s": "string", "at": "timestamp", "e": "string", "b": "boolean"}
    assert expected(tmp_path, "csv") == expected(tmp_path, "csv", options={"inferSchema": "true"}) == types
    assert expected(tmp_path, "csv", options={"infer": "false"}) == dict.fromkeys(types, "string")
    assert expected(tmp_path, "csv", options={"null": "de"}) == {**types, "s": "long"}
    unnamed = {"_c0": "string", "_c1": "string"}
    assert (expected(tmp_path, "csv", options={"header": "false"}) or {}).items() >= unnamed.items()


def test_the_header_of_a_large_csv_file_tells_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("k,n\n1,1\n")
    monkeypatch.setattr("rewindow.engine.worker.landing.arrow_landing._MOST_BYTES", 5)
    assert expected(tmp_path, "csv") == {"k": "string", "n": "unsure"}
    assert expected(tmp_path, "csv", schema="k BIGINT, n BIGINT") == {"k": "long", "n": "long"}


def test_files_that_cannot_be_landed_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xff\x00k\n")
    with refused("text-row-invalid", where="a.csv, line 1"):
        expected(tmp_path, "csv")
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "b.json").write_text("[1]\n")
    with refused("text-row-invalid", where="b.json, line 1"):
        expected(tmp_path / "json", "json")


def test_json_lines_tell_names_and_types(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"k": "x", "n": 1}\n\n{"k": "y", "n": 1.5, "o": {"a": 1}, "z": null}\n')
    found = expected(tmp_path, "json") or {}
    inner = found.pop("o")
    assert {field["name"]: field["type"] for field in inner["fields"]} == {"a": "long"}
    assert found == {"k": "string", "n": "double", "z": "string"}


def test_parquet_files_tell_their_schema(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": ["x"], "n": [1]}), tmp_path / "a.parquet")
    assert expected(tmp_path, "parquet") == {"k": "string", "n": "long"}


@pytest.mark.parametrize(
    "kind", [f"DECIMAL({'9' * 5_000},2)", "DECIMAL(\u00b2,1)", f"{'ARRAY<' * 51}INT{'>' * 51}"], ids=range(3)
)
def test_a_declared_type_without_bounds_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": 1}\n')
    with pytest.raises(ConfigError):
        expected(tmp_path, "json", schema=f"x {kind}")
