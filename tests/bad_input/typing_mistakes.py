"""What one mistypes in the YAML of a new project. Each case names the line and says what to write."""

from __future__ import annotations

from tests.bad_input.cases import Case
from tests.bad_input.scene import Bench

FEED = """\
feed: shop
partitions: 2
landing:
  every: 1h
logs:
  orders:
    source: {format: csv, path: data, options: {header: "true"}}
    key: customer
    value: [order_id, amount]
    timestamp: ordered_at
    arrived_at: received_at
"""
JOB = """\
job: sums
topology: bench_job:build_topology
feed: activity
outputs:
  totals:
    table: shop.sums
"""
_FEED, _JOB = "conf/feeds/shop.yaml", "conf/jobs/sums.yaml"


def _feed(name: str, old: str, new: str, *says: str) -> Case:
    assert FEED.count(old) == 1, name

    def given(bench: Bench) -> None:
        bench.write(_FEED, FEED.replace(old, new))

    return Case(f"mistyped: {name}", "land shop", 78, (_FEED, *says), given)


def _job(name: str, old: str, new: str, *says: str) -> Case:
    assert JOB.count(old) == 1, name

    def given(bench: Bench) -> None:
        bench.write(_JOB, JOB.replace(old, new))

    return Case(f"mistyped: {name}", "plan sums", 78, (_JOB, *says), given)


def _bytes(name: str, data: bytes, *says: str) -> Case:
    def given(bench: Bench) -> None:
        bench.write(_FEED, "")
        (bench.root / _FEED).write_bytes(data)

    return Case(f"mistyped: {name}", "land shop", 78, (_FEED, *says), given)


CASES = [
    _feed(
        "a line indented too little",
        "    value:",
        "   value:",
        "line 9, column 4: ",
        "not aligned with the lines above",
    ),
    _feed("a line indented too far", "    value:", "     value:", "line 9: ", "this line is indented too far"),
    _feed(
        "a block that is not indented",
        "  orders:",
        "orders:",
        "line 5: logs is empty: write its keys below it, indented",
    ),
    _feed("a tab as indentation", "    key", "\tkey", "line 8, column 1: a tab", "use spaces"),
    _feed("a tab behind a colon", "key: customer", "key:\tcustomer", "line 8, column 9: a tab"),
    _feed("an unknown unit", "1h", "1 hour", "line 4: landing.every: '1 hour' is not an interval"),
    _feed("a number without a unit", "1h", "60", "line 4: landing.every: 60 has no unit"),
    _feed("a misspelt key", "arrived_at", "arived_at", "line 11: ", "did you mean `arrived_at`?"),
    _feed("a misspelt key in braces", "options", "option", "line 7, column 39: ", "did you mean `options`?"),
    _feed("a misspelt word", "csv", "cvs", "line 7, column 22: ", "did you mean `csv`?"),
    _feed("a list for a block", "  orders:\n", "  - orders:\n", "line 5: logs must be a block of keys"),
    _feed("a number for a name", "key: customer", "key: 12", "line 8: logs.orders.key: 12 is not a list of columns"),
    _feed(
        "a number in quotes",
        "partitions: 2",
        "partitions: '2'",
        "line 2: partitions must be a whole number: remove the",
    ),
    _feed("no colon", "partitions: 2", "partitions 2", "line 2: this line is no `key: value`"),
    _feed("an equals sign", "partitions: 2", "partitions = 2", "line 2: this line is no `key: value`"),
    _feed("no space behind a colon", "partitions: 2", "partitions:2", "line 2: ", "the key, a colon and a space"),
    _feed("no space in braces", "format: csv", "format:csv", "line 7, column 14: ", "write a space after the colon"),
    _feed("no comma in braces", "csv, path", "csv path", "line 7, column 30: no , or }", "add the missing one"),
    _feed("a brace too few", '"true"}}', '"true"}', "line 8, column 5: no , or }", "after the { of line 7"),
    _feed("a brace too many", '"true"}}', '"true"}}}', "a } that nothing opens: remove it"),
    _feed(
        "an open quote", "key: customer", 'key: "customer', "line 8, column 10: the quote that opens here is not closed"
    ),
    _feed("typographic quotes", '"true"', "“true”", "line 7: ", "typographic quote"),
    _feed(
        "a space that is none",
        "partitions: 2",
        "partitions:\u00a02",
        "line 2, column 12: an invisible character U+00A0",
    ),
    _feed("an alias", "key: customer", "key: *k", "line 8, column 10: aliases (*name) are not supported"),
    _feed("a merge key", "landing:\n", "landing:\n  <<: {watermark: interval_end}\n", "line 4, column 3: merge keys"),
    _feed("two documents", "partitions: 2", "---\npartitions: 2", "line 2: a second document begins here"),
    _feed("a percent sign", "key: customer", "key: %customer", "line 8, column 10: a value cannot begin with %"),
    _feed("a backslash", "path: data", 'path: "data\\orders"', "line 7, ", "\\o means nothing in double quotes"),
    _feed("a value left out", "key: customer", "key:", "line 8: logs.orders.key: is empty: write it like"),
    _feed("a word that YAML reads as true", "key: customer", "key: on", "line 8: ", "write it in quotes"),
    _bytes("nothing", b"", "is empty"),
    _bytes("comments only", b"# to do\n", "is empty"),
    _bytes("Latin-1", "# für alle\nfeed: größe\n".encode("latin-1"), "line 1: this is not UTF-8", "save it as UTF-8"),
    _bytes("UTF-16", FEED.encode("utf-16"), "line 1: this is not UTF-8"),
    _job(
        "a schedule without quotes",
        "feed:",
        "schedule: * * * * *\nfeed:",
        "line 3, column 11: ",
        "begin with *: put it in",
    ),
    _job(
        "a word without quotes",
        "feed:",
        "schedule: @daily\nfeed:",
        "line 3, column 11: ",
        "begin with @: put it in quotes",
    ),
    _job("two colons", "bench_job:build", "bench_job: build", "line 2, column 20: ", "put the value in quotes"),
    _job("a dot for the colon", "bench_job:build", "bench_job.build", "line 2: topology: ", "write module:function"),
    _job("a misspelt module", "bench_job:", "bench_jb:", "line 2: ", "Did you mean `bench_job`?"),
    _job("a misspelt function", "build_topology", "build_toplogy", "line 2: ", "has no function 'build_toplogy'"),
    _job("a misspelt output", "totals:", "total:", "line 4: ", "writes to 'totals': rename `total`"),
    _job(
        "a text for a block",
        "  totals:\n    table: shop.sums",
        "  totals: shop.sums",
        "line 5: ",
        "must be a block of keys",
    ),
]
