"""Columns whose names no field of a record can have: the message names the ways on."""

from __future__ import annotations

import json

import pytest

from rewindow.contracts.ingest import LogSpec, SourceSpec
from rewindow.engine.worker.landing.log_columns import log_columns
from rewindow.errors import ConfigError


def refusal(kind: str, *names: str) -> str:
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in ("id", "at", *names)]
    spec = LogSpec("events", SourceSpec(kind, "raw", "raw", {}), ("id",), True, None, False, "at")
    with pytest.raises(ConfigError) as refused:
        log_columns(spec, json.dumps({"type": "struct", "fields": fields}))
    return str(refused.value)


def test_a_name_that_is_no_identifier_is_to_be_renamed_or_omitted() -> None:
    said = refusal("parquet", "1st;2nd")
    assert said.endswith(
        """Rename it, `columns: {other_name: "1st;2nd"}`, or omit it by listing the others under `value:`"""
    )
    assert "'1st;2nd' of raw is not a Python identifier" in said


@pytest.mark.parametrize("separator", [";", "|", "\t"])
def test_of_a_csv_file_it_may_be_the_header_of_a_file_with_another_separator(separator: str) -> None:
    said = refusal("csv", f"id{separator}at")
    assert f". If {json.dumps(separator)} separates the columns of a file, unlike in the others, " in said
    assert "separates" not in refusal("csv", "1st")
