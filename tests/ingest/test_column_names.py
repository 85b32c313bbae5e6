"""Columns whose names no field of a record can have: the message names the ways on."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from rewindow.contracts.ingest import LogSpec, SourceSpec
from rewindow.engine.worker.landing.log_columns import log_columns
from tests.refusals import refused


def refusal(kind: str, *names: str) -> Mapping[str, object]:
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in ("id", "at", *names)]
    spec = LogSpec("events", SourceSpec(kind, "raw", "raw", {}), ("id",), True, None, False, "at")
    with refused("column-name-unusable", column=names[-1], source="raw") as caught:
        log_columns(spec, json.dumps({"type": "struct", "fields": fields}))
    return caught.value.facts


def test_a_name_that_is_no_identifier_is_to_be_renamed_or_omitted() -> None:
    facts = refusal("parquet", "1st;2nd")
    assert (facts["quoted"], facts["hint"]) == ('"1st;2nd"', "")
    assert "identifier" in str(facts["reason"])


@pytest.mark.parametrize("separator", [";", "|", "\t"])
def test_of_a_csv_file_it_may_be_the_header_of_a_file_with_another_separator(separator: str) -> None:
    assert f"If {json.dumps(separator)} separates" in str(refusal("csv", f"id{separator}at")["hint"])
    assert refusal("csv", "1st")["hint"] == ""
