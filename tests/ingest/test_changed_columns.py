"""Files of later days have other columns: whatever reads them, values stay in their columns, and nothing is null unasked."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.contracts.text_options import TEXT_FORMATS
from rewindow.control.ingest.land import land
from rewindow.control.ingest.landings import LANDING
from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.land_by_arrow import arrow_at
from tests.ingest.local_engine import T0, log_rows, one_log
from tests.refusals import containing, refused

ROW = {"user": "ann", "t": 1, "amount": 5}
ALL_COLUMNS: dict[str, object] = {}
SELECTED = {"value": ["amount"]}


class _TypesOnly:
    """Decides types with Spark, as Arrow does not for Parquet files that differ, and fails the test if Arrow leaves it more."""

    def __init__(self, spark):
        self.columns = spark.columns

    def __getattr__(self, name):
        raise AssertionError(name)


class Files:
    """A feed of files of one format, which one of the readers lands."""

    def __init__(self, root, engine, kind):
        self.root, self.engine, self.kind = root, engine, kind
        self.tables, self.source = DeltaFeedTables(f"{root}/w"), {"path": "raw", "format": kind}
        (root / "raw").mkdir()

    def write(self, name, *rows):
        path = self.root / "raw" / f"{name}.{self.kind}"
        if self.kind == "parquet":
            pq.write_table(pa.Table.from_pylist(list(rows)), path)
        elif self.kind == "json":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            lines = [rows[0], *(row.values() for row in rows)]
            path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))

    def land(self, *, keep=None, schema=None, **log):
        source = {**self.source, **({"schema": schema} if schema else {})}
        feed = one_log(source=source, **log)
        return land(feed, self.tables, self.engine, now_ms=T0, new_generation=keep is not None, keep=keep)

    def refuses(self, refusal, **log):
        """Check that a landing is refused and lands nothing."""
        before = len(self.tables.state("activity"))
        with refusal:
            self.land(**log)
        kinds = [row.kind for row in self.tables.state("activity")][before:]
        assert LANDING not in kinds

    def landed(self, *names):
        rows = sorted(log_rows(self.tables), key=lambda row: (row["generation"], row["timestamp"]))
        return [tuple(row[name] for name in names) for row in rows]


SPARK_TOO = [pytest.param(kind, marks=pytest.mark.spark) for kind in ("parquet", "parquet by Spark")]


@pytest.fixture(params=["csv", "json", *SPARK_TOO])
def kind(request):
    return request.param


@pytest.fixture
def files(request, tmp_path, kind):
    if kind in TEXT_FORMATS:
        return Files(tmp_path, arrow_at(tmp_path), kind)
    from rewindow.engine.spark.spark_landing import SparkLandingEngine

    other = SparkLandingEngine(request.getfixturevalue("spark"), project_root=str(tmp_path))
    if kind != "parquet":
        return Files(tmp_path, other, "parquet")
    arrow = ArrowLandingEngine(
        lambda: _TypesOnly(other), _TypesOnly(other), project_root=str(tmp_path), most_rows=10**9
    )
    return Files(tmp_path, arrow, kind)


def test_a_new_column_that_is_not_landed_does_not_matter_wherever_it_is(files):
    files.write("a", ROW)
    assert files.land(**SELECTED).rows == 1
    files.write(
        "b", {"user": "bob", "coupon": "X", "t": 2, "amount": 6}, {"user": "cid", "coupon": "7", "t": 3, "amount": 7}
    )
    assert files.land(**SELECTED).rows == 2
    files.write("c", {"amount": 8, "user": "dan", "t": 4})
    assert files.land(**SELECTED).rows == 1
    assert files.landed("user", "amount") == [("ann", 5), ("bob", 6), ("cid", 7), ("dan", 8)]


@pytest.mark.parametrize("kind", ["csv", "json"], indirect=True)
def test_a_declared_schema_is_a_selection_of_columns_by_name(files):
    schema = "amount BIGINT, user STRING, t BIGINT"
    files.write("a", ROW)
    files.write("b", {"coupon": "X", **ROW, "t": 2, "amount": 6})
    assert files.land(schema=schema).rows == 2
    files.write("c", {"user": "bob", "amount": 7, "note": 1, "t": 3})
    assert files.land(schema=schema).rows == 1
    assert files.landed("user", "amount") == [("ann", 5), ("ann", 6), ("bob", 7)]


def test_a_new_column_that_would_be_landed_needs_a_decision_and_is_null_before_it(files):
    files.write("a", ROW)
    assert files.land().rows == 1
    files.write("b", {"user": "bob", "coupon": "X", "t": 2, "amount": 6})
    fix = containing("`rewindow land FEED --new-generation --keep 1`")
    files.refuses(refused("file-field-unknown", file=containing("b."), field="coupon", fix=fix))
    assert files.land(keep=1, optional=["coupon"]).rows == 1
    assert files.landed("offset", "user", "amount", "coupon") == [(0, "ann", 5, None), (0, "bob", 6, "X")]
    files.write("c", {**ROW, "t": 3})
    assert files.land(optional=["coupon"]).rows == 1
    assert files.landed("coupon") == [(None,), ("X",), (None,)]
    assert files.land(keep=0, optional=["coupon"]).rows == 3


def test_a_new_column_can_be_ignored(files):
    files.write("a", ROW)
    assert files.land().rows == 1
    files.write("b", {**ROW, "t": 2, "coupon": "X"})
    assert files.land(ignore=["coupon"]).rows == 1
    assert files.land(keep=0, ignore=["coupon"]).rows == 2
    assert "coupon" not in log_rows(files.tables)[0]


def test_a_value_that_lists_a_new_column_lands_it_from_then_on(files):
    files.write("a", ROW)
    assert files.land(**SELECTED).rows == 1
    files.write("b", {"coupon": "X", **ROW, "t": 2})
    files.refuses(refused("feed-definition-changed", keep=containing("`--keep 1`")), value=["coupon", "amount"])
    assert files.land(keep=1, value=["coupon", "amount"]).rows == 1
    assert files.landed("amount", "coupon") == [(5, None), (5, "X")]
    changes = "events.value"
    files.refuses(refused("kept-landings-incompatible", keep=2, changes=changes), keep=2, value=["coupon"])


def test_a_landed_column_that_is_gone_is_refused_unless_it_is_optional(files):
    files.write("a", ROW)
    assert files.land().rows == 1
    files.write("b", {"user": "bob", "t": 2})
    fix = containing("`optional: [amount]`")
    files.refuses(refused("file-field-missing", file=containing("b."), field="amount", fix=fix))
    assert files.land(optional=["amount"]).rows == 1
    assert files.landed("user", "amount") == [("ann", 5), ("bob", None)]


def test_a_renamed_optional_column_is_refused(files):
    files.write("a", ROW)
    assert files.land(optional=["amount"], **SELECTED).rows == 1
    files.write("b", {"user": "bob", "t": 2, "amt": 6})
    files.refuses(refused("file-field-renamed", field="amt", missing="amount"), optional=["amount"], **SELECTED)


def test_a_column_that_is_not_landed_may_go_and_its_values_do_not_matter(files):
    files.write("a", {**ROW, "note": 1})
    assert files.land(**SELECTED).rows == 1
    if files.kind != "parquet":
        files.write("b", {**ROW, "t": 2, "note": "many"})
        assert files.land(**SELECTED).rows == 1
    files.write("c", {**ROW, "t": 3})
    assert files.land(**SELECTED).rows == 1


@pytest.mark.parametrize("kind", ["csv"], indirect=True)
def test_csv_files_of_a_first_landing_need_the_same_columns_unless_some_are_optional(files):
    files.write("a", ROW)
    files.write("b", {"coupon": "X", **ROW, "t": 2})
    fix = containing("`optional: [coupon]`")
    files.refuses(refused("file-field-missing", file="a.csv", field="coupon", fix=fix))
    assert files.land(optional=["coupon"]).rows == 2
    assert files.landed("amount", "coupon") == [(5, None), (5, "X")]


@pytest.mark.parametrize("kind", ["csv"], indirect=True)
def test_a_declared_column_that_no_header_has_is_refused(files):
    files.write("a", ROW)
    fix = containing("It has amount")
    files.refuses(
        refused("file-field-missing", file="a.csv", field="price", fix=fix),
        schema="user STRING, t BIGINT, price BIGINT",
    )


@pytest.mark.parametrize("kind", ["csv"], indirect=True)
def test_a_line_with_another_number_of_values_than_its_header_is_refused(files):
    files.write("a", ROW)
    assert files.land(**SELECTED).rows == 1
    (files.root / "raw" / "b.csv").write_text("user,coupon,t,amount\nbob,2,6\n")
    files.refuses(refused("text-row-invalid", where="b.csv, line 2"), **SELECTED)
