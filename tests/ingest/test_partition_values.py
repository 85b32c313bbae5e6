"""The values of a Delta source's partition columns, which its log has as texts."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from rewindow.errors import ConfigError
from tests.ingest.land_by_arrow import land_by_arrow
from tests.ingest.local_engine import T0

SOURCE = {"source": {"table": "raw.events"}}


def write(root, **columns):
    rows = len(next(iter(columns.values())))
    other = {"t": [T0 + n for n in range(rows)], "got": [T0] * rows, "x": list(range(rows))}
    write_deltalake(
        f"{root}/w/raw/events", pa.table({"user": ["ann"] * rows, **other, **columns}), partition_by=[*columns]
    )


@pytest.mark.parametrize("way", [{}, {"arrived_at": "got"}])
def test_an_empty_partition_value_is_null(tmp_path, way):
    write(tmp_path, part=["a", "", None])
    assert {row["x"]: row["part"] for row in land_by_arrow(tmp_path, **SOURCE, **way)} == {0: "a", 1: None, 2: None}


@pytest.mark.parametrize("way", [{}, {"arrived_at": "got"}])
@pytest.mark.parametrize(
    ("log", "fix"),
    [
        ({"key": "part"}, "another column$"),
        ({"value": ["part"]}, "another column$"),
        ({}, r"or leave .*`ignore: \[part\]`"),
    ],
)
def test_a_partition_column_of_bytes_is_refused_by_name(tmp_path, log, fix, way):
    write(tmp_path, part=[b"a", b"\xff\x01"])
    with pytest.raises(ConfigError, match=rf"partitioned by part, which is BINARY.*{fix}"):
        land_by_arrow(tmp_path, **SOURCE, **log, **way)


@pytest.mark.parametrize("log", [{"value": ["x"]}, {"ignore": ["part"]}])
def test_a_partition_column_of_bytes_that_is_not_landed_does_no_harm(tmp_path, log):
    write(tmp_path, part=[b"a", b"\xff\x01"])
    assert {row["x"] for row in land_by_arrow(tmp_path, **SOURCE, **log)} == {0, 1}
