"""Files of one source store a column with different types: what fits is landed, the rest is refused with files and types."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.land_by_arrow import land_by_arrow
from tests.ingest.local_engine import log_rows
from tests.refusals import refused

NOW = datetime(2026, 1, 5, 8, 15, tzinfo=UTC)
INT, LONG, TEXT, REAL = pa.int32(), pa.int64(), pa.string(), pa.float64()
WITH_ZONE, WITHOUT = pa.timestamp("us", "UTC"), pa.timestamp("us")


def write(root, name, kind, value):
    (root / "raw").mkdir(exist_ok=True)
    columns = {"user": pa.array(["ann"]), "t": pa.array([1]), "x": pa.array([value], kind), "y": pa.array([1])}
    pq.write_table(pa.table(columns), root / "raw" / f"{name}.parquet")


def landed(root, zone="UTC", **log):
    return [
        row["x"] for row in sorted(land_by_arrow(root, zone, **log), key=lambda row: (row["landing"], str(row["x"])))
    ]


FITTING = {
    "wider integers": ((INT, 5), (LONG, 2**40), [5, 2**40]),
    "wider numbers": ((pa.float32(), 0.5), (REAL, 1e300), [0.5, 1e300]),
    "narrower integers": ((LONG, 5), (INT, 7), [5, 7]),
    "nothing but nulls, then texts": ((TEXT, "x"), (pa.null(), None), ["x", None]),
}


@pytest.mark.parametrize("case", FITTING)
def test_a_type_that_fits_what_is_landed_is_landed(tmp_path, case):
    one, other, values = FITTING[case]
    write(tmp_path, "a", *one)
    assert landed(tmp_path) == values[:1]
    write(tmp_path, "b", *other)
    assert landed(tmp_path) == values


@pytest.mark.parametrize("case", FITTING)
@pytest.mark.parametrize("is_turned", [False, True])
def test_files_of_one_landing_may_have_types_that_fit(tmp_path, case, is_turned):
    one, other, values = FITTING[case]
    write(tmp_path, "a", *(other if is_turned else one))
    write(tmp_path, "b", *(one if is_turned else other))
    assert set(landed(tmp_path)) == set(values)


OTHER = {
    "texts": ((LONG, 5), (TEXT, "x"), "BIGINT", "STRING"),
    "fractions": ((LONG, 5), (REAL, 0.5), "BIGINT", "DOUBLE"),
    "another scale": (
        (pa.decimal128(9, 2), Decimal("1.25")),
        (pa.decimal128(9, 4), Decimal("1.2525")),
        "DECIMAL(9,2)",
        "DECIMAL(9,4)",
    ),
    "days": ((WITH_ZONE, NOW), (pa.date32(), NOW.date()), "TIMESTAMP", "DATE"),
}


@pytest.mark.parametrize("case", OTHER)
def test_a_column_with_another_type_is_refused_with_file_and_types(tmp_path, case):
    one, other, first, second = OTHER[case]
    write(tmp_path, "a", *one)
    landed(tmp_path)
    write(tmp_path, "b", *other)
    with refused("file-column-type-differs", file="b.parquet", column="x", stored=second, type=first):
        landed(tmp_path)
    assert len(log_rows(DeltaFeedTables(f"{tmp_path}/w"))) == 1


@pytest.mark.parametrize("case", OTHER)
def test_two_types_in_a_first_landing_name_both_files_and_a_column_that_is_not_landed_does_not_matter(tmp_path, case):
    one, other, first, second = OTHER[case]
    write(tmp_path, "a", *one)
    write(tmp_path, "b", *other)
    with refused("column-types-mixed", column="x", types=f"{first} in a.parquet and {second} in b.parquet"):
        landed(tmp_path)
    with pytest.raises(KeyError):
        landed(tmp_path, value=["y"])
    assert len(log_rows(DeltaFeedTables(f"{tmp_path}/w"))) == 2


def test_times_with_and_without_a_zone_are_not_mixed_unless_they_mean_the_same(tmp_path):
    write(tmp_path, "a", WITH_ZONE, NOW)
    assert landed(tmp_path, zone="Europe/Berlin") == [1_767_600_900_000]
    write(tmp_path, "b", WITHOUT, NOW.replace(tzinfo=None))
    with refused(
        "file-column-type-differs", file="b.parquet", column="x", type="TIMESTAMP", stored="TIMESTAMP without a zone"
    ):
        landed(tmp_path, zone="Europe/Berlin")


def test_a_column_that_a_file_has_twice_is_refused(tmp_path):
    write(tmp_path, "a", LONG, 5)
    landed(tmp_path)
    names = ["user", "t", "x", "y", "X"]
    pq.write_table(
        pa.Table.from_arrays([pa.array(["ann"]), *(pa.array([n]) for n in range(4))], names=names),
        tmp_path / "raw" / "b.parquet",
    )
    with refused("file-column-repeated", file="b.parquet", column="x", count=2):
        landed(tmp_path, ignore=["X"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"user": "bob", "t": 2, "x": 6, "x": 999}', r"x"),
        ('{"user": "bob", "t": 2, "x": 6, "at": {"k": 1, "k": 2}}', r"k"),
    ],
)
def test_a_json_field_that_an_object_has_twice_is_refused(tmp_path, line, said):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.json").write_text(f'{{"user": "ann", "t": 1, "x": 5}}\n{line}\n')
    source = {"path": "raw", "format": "json", "schema": "user STRING, t BIGINT, x BIGINT"}
    with refused("text-row-invalid", where="a.json, line 2", reason=f'the field "{said}" occurs twice'):
        landed(tmp_path, source=source)
    assert landed(tmp_path, source=source, unreadable="skip") == [5]


def test_fields_of_json_that_differ_in_case_are_two(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.json").write_text('{"user": "ann", "t": 1, "x": 5, "X": 6}\n')
    source = {"path": "raw", "format": "json"}
    (row,) = land_by_arrow(tmp_path, source=source, value=["x", "large"], columns={"large": "X"})
    assert (row["x"], row["large"]) == (5, 6)


def test_values_of_several_types_in_a_first_landing_of_json_are_named_with_their_places(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.json").write_text('{"user": "ann", "t": 1, "x": 5}\n{"user": null, "t": 2, "x": 5.5}\n')
    (tmp_path / "raw" / "b.json").write_text(
        '{"user": "bob", "t": 3, "x": null}\n{"user": "cid", "t": 4, "x": "n/a"}\n'
    )
    source = {"path": "raw", "format": "json"}
    with refused(
        "json-types-mixed", field="x", one="DOUBLE in a.json, line 2", other="STRING in b.json, line 2", column="x"
    ):
        landed(tmp_path, source=source)
    declared = {**source, "schema": "user STRING, t BIGINT, x JSON"}
    assert landed(tmp_path, source=declared) == ['"n/a"', "5", "5.5", None]


def test_iso_times_in_json_need_no_spark(tmp_path):
    (tmp_path / "raw").mkdir()
    lines = [
        '{"user": "ann", "t": "2026-01-05T08:15:00Z", "x": 1}',
        '{"user": "ann", "t": "2026-01-05T09:15:00.5+01:00", "x": 2}',
    ]
    (tmp_path / "raw" / "a.json").write_text("\n".join(lines))
    assert landed(tmp_path, zone="Europe/Berlin", source={"path": "raw", "format": "json"}) == [1, 2]
    rows = log_rows(DeltaFeedTables(f"{tmp_path}/w"))
    assert sorted(row["timestamp"] for row in rows) == [1_767_600_900_000, 1_767_600_900_500]


def test_a_parquet_file_that_is_cut_off_is_named_without_spark(tmp_path):
    write(tmp_path, "a", LONG, 5)
    whole = (tmp_path / "raw" / "a.parquet").read_bytes()
    (tmp_path / "raw" / "a.parquet").write_bytes(whole[:-20])
    with refused("parquet-file-truncated", file="a.parquet"):
        landed(tmp_path)


@pytest.mark.parametrize("log", [{}, {"value": ["x"]}])
def test_a_column_that_a_first_file_has_twice_is_named(tmp_path, log):
    (tmp_path / "raw").mkdir()
    names = ["user", "t", "x", "y", "Y"]
    pq.write_table(
        pa.table([pa.array([one]) for one in ("ann", 1, 1, 2, 3)], names=names), tmp_path / "raw" / "a.parquet"
    )
    with refused("file-column-repeated", file="a.parquet", column="y", count=2):
        landed(tmp_path, **log)
