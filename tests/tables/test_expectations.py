"""What expectations observe in rows: counts, the first offending rows, and the same result however rows are split into files."""

from __future__ import annotations

import struct
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.contracts.expectations import Expectation, Kind, Observation, OnFail
from rewindow.streams.serde.schema import OUTPUT_META, Column
from rewindow.tables.delta.row_queries import QueryError, as_text, check_query, refused, row_queries
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.expectation_checks import needed_columns, observe_rows

COLUMNS = (
    Column("user", "string"),
    Column("total", "long"),
    Column("share", "double"),
    Column("price", "decimal(10,2)"),
    Column("is_new", "boolean"),
    *OUTPUT_META,
)
SCHEMA = arrow_schema(COLUMNS)


def rows(*values: tuple[object, ...]) -> pa.RecordBatch:
    """Return rows of user, total, share, price and is_new; their offsets are their order."""
    whole = [(*value, 0, 1, 0, offset, 7) for offset, value in enumerate(values)]
    columns = list(zip(*whole, strict=True)) if whole else [()] * len(SCHEMA)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


SOME = rows(
    ("ann", 3, 0.5, Decimal("1.00"), True),
    ("bob", None, float("nan"), Decimal("9.99"), None),
    (None, -4, None, None, False),
    ("ann", 12, 1.5, Decimal("10.01"), True),
)


def expectation(kind: Kind, *columns: str, **more: object) -> Expectation:
    return Expectation("totals", "it", kind, OnFail.HOLD, columns, **more)  # type: ignore[arg-type]


def observe(one: Expectation, *batches: pa.RecordBatch) -> Observation:
    (found,) = observe_rows([one], COLUMNS, ("user",), batches or (SOME,))
    return found


@pytest.mark.parametrize(
    ("one", "failed", "says"),
    [
        (expectation(Kind.NOT_NULL, "user"), 1, "1 of 4 rows have a null in user"),
        (expectation(Kind.NOT_NULL, "user", "total"), 2, "2 of 4 rows have a null in user or total"),
        (expectation(Kind.NOT_NULL, "_offset"), 0, "0 of 4 rows"),
        (expectation(Kind.UNIQUE), 1, "1 of 4 rows repeat a key (1 value)"),
        (expectation(Kind.UNIQUE, "user", "total"), 0, "0 of 4 rows repeat (user, total)"),
        (expectation(Kind.UNIQUE, "is_new"), 1, "1 of 4 rows repeat (is_new)"),
        (expectation(Kind.RANGE, "total", minimum=0), 1, "expected at least 0"),
        (expectation(Kind.RANGE, "total", maximum=3), 1, "expected at most 3"),
        (expectation(Kind.RANGE, "total", minimum=0, maximum=3), 2, "expected 0 to 3"),
        (expectation(Kind.RANGE, "share", maximum=2.0), 1, "1 of 4"),  # NaN is the largest number
        (expectation(Kind.RANGE, "share", minimum=1.0), 1, "first: user=ann, share=0.5"),
        (expectation(Kind.VALUES, "share", allowed=(0.5, float("nan"))), 1, "first: user=ann, share=1.5"),
        (expectation(Kind.RANGE, "price", maximum=Decimal("10.00")), 1, "first: user=ann, price=10.01"),
        (expectation(Kind.RANGE, "user", minimum="b"), 2, "expected at least b"),
        (expectation(Kind.VALUES, "user", allowed=("ann", "bob")), 0, "expected ann, bob"),
        (expectation(Kind.VALUES, "user", allowed=("bob",)), 2, "2 of 4 rows have another user"),
        (expectation(Kind.VALUES, "is_new", allowed=(True,)), 1, "first: user=None, is_new=False"),
        (expectation(Kind.VALUES, "price", allowed=(Decimal(1), Decimal("9.99"))), 1, "10.01"),
    ],
    ids=str,
)
def test_offending_rows_are_counted_and_named(one, failed, says):
    found = observe(one)
    assert found.failed == failed
    assert found.is_met == (failed == 0)
    assert says in found.sentence
    assert Observation.from_json(found.as_json()) == found


def test_every_nan_repeats_every_other_and_both_zeros_are_equal():
    odd = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000123))[0]
    batch = rows(*(("ann", 1, share, None, True) for share in (float("nan"), -float("nan"), odd, 0.0, -0.0, 1.0)))
    found = observe(expectation(Kind.UNIQUE, "share"), batch)
    assert (found.failed, found.sentence.count("2 values")) == (3, 1)


def test_columns_may_be_called_as_the_counts_of_repeated_rows():
    batch = pa.RecordBatch.from_pydict({"rows": [1, 1], "count_all": ["a", "a"]})
    columns = (Column("rows", "long"), Column("count_all", "string"))
    (found,) = observe_rows([expectation(Kind.UNIQUE, "rows", "count_all")], columns, ("rows",), [batch])
    assert found.failed == 1
    assert found.examples == ("rows=1, count_all=a, times=2",)


def test_without_rows_everything_is_met():
    for one in (
        expectation(Kind.UNIQUE),
        expectation(Kind.NOT_NULL, "user"),
        expectation(Kind.RANGE, "total", minimum=0),
    ):
        (found,) = observe_rows([one], COLUMNS, ("user",), [])
        assert (found.failed, found.examples) == (0, ())


def test_only_the_columns_that_are_named_are_read():
    names = needed_columns([expectation(Kind.RANGE, "total", minimum=0)], ("user",))
    assert names == ["user", "total", "_epoch", "_partition", "_offset"]
    assert observe(expectation(Kind.RANGE, "total", minimum=0), SOME.select(names)).failed == 1


@given(
    st.lists(st.tuples(st.sampled_from(["ann", "bob", None]), st.integers(-3, 3) | st.none()), max_size=12),
    st.lists(st.integers(0, 12), max_size=3),
    st.integers(0, 2**16),
)
def test_the_result_is_the_same_however_rows_are_split_and_ordered(values, cuts, seed):
    whole = rows(*((user, total, 0.0, None, None) for user, total in values))
    order = sorted(range(len(values)), key=lambda index: hash((seed, index)))
    moved = whole.take(pa.array(order, pa.int64()))
    bounds = sorted({0, len(values), *(min(cut, len(values)) for cut in cuts)})
    parts = [moved.slice(start, end - start) for start, end in pairwise(bounds)]
    expected = {
        expectation(Kind.NOT_NULL, "user"): sum(user is None for user, _ in values),
        expectation(Kind.UNIQUE): len(values) - len({user for user, _ in values}),
        expectation(Kind.RANGE, "total", minimum=0): sum(total is not None and total < 0 for _, total in values),
        expectation(Kind.VALUES, "user", allowed=("ann",)): sum(user == "bob" for user, _ in values),
    }
    at_once = observe_rows(list(expected), COLUMNS, ("user",), [whole])
    assert [one.failed for one in at_once] == list(expected.values())
    assert observe_rows(list(expected), COLUMNS, ("user",), parts) == at_once


def queried(query: str, before: pa.RecordBatch | None = None) -> list[dict[str, object]]:
    tables = {
        "new_rows": (SCHEMA, lambda: iter([SOME])),
        "previous_rows": (SCHEMA, lambda: iter([before] if before is not None else [])),
    }
    with row_queries(tables) as queries:
        found = []
        for batch in queries.rows(query, 60_000):
            columns = [as_text(column) for column in batch.columns]
            found += pa.table(columns, names=batch.schema.names).to_pylist()
    return found


def test_a_query_reads_the_new_rows_and_those_before():
    query = (
        'SELECT n."user", n.total FROM new_rows n JOIN previous_rows p ON p."user" = n."user" WHERE n.total > p.total'
    )
    assert queried(query) == []
    assert queried(query, rows(("ann", 5, 0.0, None, None))) == [{"user": "ann", "total": 12}]
    assert queried("WITH t AS (SELECT count(*) AS n FROM new_rows) SELECT n FROM t WHERE n < 5") == [{"n": 4}]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT nope FROM new_rows", "No field named nope"),
        ("SELECT * FROM old_rows", "old_rows"),
        ("SELECT FROM", "SQL"),
        ("DELETE FROM new_rows", "only SELECT"),
        ("CREATE EXTERNAL TABLE t STORED AS csv LOCATION '/etc/passwd'", "only SELECT"),
        ("SELECT * FROM '/etc/passwd'", "not found"),
        ("SELECT 1; SELECT 2", "single"),
        ("SELECT * FROM new_rows WHERE total > random()", "random gives another value in each attempt"),
        ("SELECT * FROM new_rows WHERE _timestamp > now ()", "now gives another value"),
        ("SELECT CURRENT_DATE", "CURRENT_DATE gives another value"),
    ],
    ids=str,
)
def test_a_query_that_cannot_be_executed_says_why(query, says):
    with pytest.raises(QueryError, match=says):
        check_query(query, {"new_rows": SCHEMA, "previous_rows": SCHEMA}, 60_000)


def test_words_in_texts_names_and_comments_are_no_calls():
    for query in (
        "SELECT 'now()' FROM new_rows",
        'SELECT "random()" FROM new_rows',
        "-- uuid()\nSELECT 1",
        "/* today() */ SELECT 1",
    ):
        assert refused(query) is None
