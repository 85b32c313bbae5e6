"""One field of each of three objects with different fields."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/ksql-heterogeneous-json/ksql/code"
INPUT = {
    "source_data": """
{"key": null, "JSONType1": {"fieldA": "some data", "numberField": 1.001, "oneOnlyField": "more data", "randomField": "random data"}, "JSONType2": {"fieldA": "data", "fieldB": "b-data", "numberField": 98.6}, "JSONType3": {"fieldA": "data", "fieldB": "b-data", "numberField": 98.6, "fieldC": "data", "fieldD": "D-data"}}
{"key": null, "JSONType1": {"fieldA": "some data", "numberField": 2.001, "oneOnlyField": "more data", "randomField": "random data"}, "JSONType2": {"fieldA": "data", "fieldB": "b-data", "numberField": 99.6}, "JSONType3": {"fieldA": "data", "fieldB": "b-data", "numberField": 98.6, "fieldC": "data", "fieldD": "D-data-2"}}
{"key": null, "JSONType1": {"fieldA": "some data", "numberField": 3.001, "oneOnlyField": "more data", "randomField": "random data"}, "JSONType2": {"fieldA": "data", "fieldB": "b-data", "numberField": 100.6}, "JSONType3": {"fieldA": "data", "fieldB": "b-data", "numberField": 98.6, "fieldC": "data", "fieldD": "D-data-3"}}
{"key": null, "JSONType1": {"fieldA": "some data", "numberField": 4.001, "oneOnlyField": "more data", "randomField": "random data"}, "JSONType2": {"fieldA": "data", "fieldB": "b-data", "numberField": 101.6}, "JSONType3": {"fieldA": "data", "fieldB": "b-data", "numberField": 98.6, "fieldC": "data", "fieldD": "D-data-4"}}
""",
}
LOGS = {
    "source_data": {"key": "key", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "SUMMARY_REPORTS": """
{"SPECIAL_INFO": "more data", "RUNFLD": 98.6, "DESCRIPTION": "D-data"}
{"SPECIAL_INFO": "more data", "RUNFLD": 99.6, "DESCRIPTION": "D-data-2"}
{"SPECIAL_INFO": "more data", "RUNFLD": 100.6, "DESCRIPTION": "D-data-3"}
{"SPECIAL_INFO": "more data", "RUNFLD": 101.6, "DESCRIPTION": "D-data-4"}
""",
}


class Summary(NamedTuple):
    SPECIAL_INFO: str
    RUNFLD: float
    DESCRIPTION: str


def summary(data: Any) -> Summary:
    return Summary(data.JSONType1.oneOnlyField, data.JSONType2.numberField, data.JSONType3.fieldD)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("source_data").map_values(summary).to("SUMMARY_REPORTS")
    return builder.build()
