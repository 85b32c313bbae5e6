"""Slips in the tutorial's example, found by `plan` before anything is landed."""

from __future__ import annotations

from pathlib import Path

from tests.bad_input.cases import Case, edited
from tests.bad_input.scene import Bench

FEED = """\
feed: orders
partitions: 4
landing: {every: 1d}
logs:
  orders:
    source: {format: csv, path: data/orders.csv, options: {header: "true", inferSchema: "true"}}
    key: customer
    value: [order_id, amount, country]
    timestamp: ordered_at
    arrived_at: received_at
"""
JOB = """\
job: daily_orders
topology: shop_job:build_topology
feed: orders
outputs:
  daily-orders: {table: shop.daily_orders}
semantics: {stream_time_from: watermark}
"""
MODULE = """\
from rewindow import Count, Processor, StreamsBuilder, Sum, TimeWindows, Topology, until_window_closes


class Slip(Processor):
    def process(self, record):
        row = record.value
        if row.amout > 10:
            self.context.forward(record)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("orders")
        .where("amount > 0")
        .group_by_key()
        .windowed_by(TimeWindows.of("1d", grace="6h"))
        .aggregate({"orders": Count(), "amount": Sum("amount")}, store="orders-per-day")
        .suppress(until_window_closes())
        .to_stream()
        .to("daily-orders")
    )
    return builder.build()
"""
ROWS = """\
order_id,customer,amount,country,ordered_at,received_at
1,ann,2.50,de,2026-11-01 08:00:00,2026-11-01 08:05:00
2,bob,4.00,fr,2026-11-01 09:00:00,2026-11-01 09:05:00
3,ann,1.50,de,2026-11-02 08:00:00,2026-11-02 08:05:00
"""


ROWS_FEED = """\
feed: orders
partitions: 2
logs:
  orders: {source: {path: raw, format: parquet}, key: user, timestamp: t, arrived_at: got, value: [x]}
"""
"""A feed of the rows that `Bench.rows` writes, for the same job."""


def daily_project(root: Path) -> Bench:
    """Return a project in which the job sums the ``x`` of each user and day. Nothing is landed."""
    bench = Bench(root)
    bench.write("conf/feeds/orders.yaml", ROWS_FEED)
    bench.write("conf/jobs/daily_orders.yaml", JOB)
    bench.write("conf/targets/local.yaml", "target: local\nwarehouse: warehouse\n")
    bench.write("shop_job.py", MODULE.replace("amount > 0", "x > 0").replace('Sum("amount")', 'Sum("x")'))
    return bench


def shop(bench: Bench) -> None:
    """Write an example like the tutorial's into a project."""
    bench.write("conf/feeds/orders.yaml", FEED)
    bench.write("conf/jobs/daily_orders.yaml", JOB)
    bench.write("shop_job.py", MODULE)
    bench.write("data/orders.csv", ROWS)


def _edited(name: str, path: str, old: str, new: str, code: int, *says: str, command: str = "plan") -> Case:
    return Case(f"a newcomer {name}", f"{command} daily_orders", code, says, edited(path, old, new, shop))


def _code(name: str, old: str, new: str, *says: str, command: str = "plan") -> Case:
    return _edited(name, "shop_job.py", old, new, 78, *says, command=command)


_WHERE, _TO_STREAM = '.where("amount > 0")', ".to_stream()\n"
CASES = [
    Case("a newcomer plans before landing", "plan daily_orders", 66, ("never landed", "The job's code fits"), shop),
    _code("misspells a column in where", _WHERE, '.where("amont > 0")', "no field 'amont'", "did you mean 'amount'?"),
    _code("explains a misspelt column", _WHERE, '.where("amont > 0")', "no field 'amont'", command="explain"),
    _code("runs a misspelt column", _WHERE, '.where("amont > 0")', "no field 'amont'", command="run"),
    _code("misspells an attribute", _WHERE, ".filter(lambda key, row: row.amout > 0)", "shop_job.py:15", "'amout'"),
    _code("maps an unknown attribute", _WHERE, ".map_values(lambda row: row.total)", "no field 'total'", "order_id"),
    _code("takes rows for dicts", _WHERE, '.filter(lambda key, row: row["amount"] > 0)', "not a dict", "row.order_id"),
    _code("calls a method of dicts", _WHERE, '.filter(lambda key, row: row.get("amount") > 0)', "no field 'get'"),
    _code("reads the key as a row", _WHERE, ".filter(lambda key, row: key.customer > 'a')", "is text, not a row"),
    _code("misspells an attribute in a processor", _WHERE, '.process(Slip, name="slip")', "shop_job.py:7", "'amout'"),
    _code(
        "reads a field after an aggregate", _TO_STREAM, _TO_STREAM + ".map_values(lambda row: row.total)\n", "'total'"
    ),
    _code(
        "reads a windowed key", _TO_STREAM, ".to_stream().map(lambda key, row: (key.customer, row))\n", "key, window"
    ),
    _code("misspells the topic", '"orders")\n', '"ordres")\n', "reads 'ordres'", "it has orders"),
    _code("sums an unknown column", 'Sum("amount")', 'Sum("amonut")', "there is no field 'amonut'"),
    _code("sums a text", 'Sum("amount")', 'Sum("country")', "country was landed as text"),
    _code("compares a number with a text", _WHERE, """.where("amount > '0'")""", "amount is a number and '0' is text"),
    _code(
        "compares a text with a number", _WHERE, '.where("country = 49")', "country is text and 49 is a whole number"
    ),
    _code("takes a text for a condition", _WHERE, '.where("country")', "country is text"),
    _code("writes == in a condition", _WHERE, '.where("amount == 1")', "write `=` for equality"),
    _code("writes && in a condition", _WHERE, '.where("amount > 1 && amount < 3")', "write `and`"),
    _code("divides in a condition", _WHERE, '.where("amount / 2 > 1")', "there is no division"),
    _code("quotes a text with two quotes", _WHERE, """.where('country = "de"')""", "write texts in single quotes"),
    _code("writes a verb as in Java", ".group_by_key()", ".groupByKey()", "write group_by_key"),
    _code("misspells a verb", ".suppress(", ".supress(", "shop_job.py", "write suppress"),
    _code("forgets to_stream", _TO_STREAM, "\n", "call to_stream() before it"),
    _code("gives a lambda one argument", _WHERE, ".filter(lambda row: row.amount > 0)", "takes (row)", "(key, value)"),
    _code("writes to an unknown output", '.to("daily-orders")', '.to("daily_orders")', "add it to `outputs:`"),
    _code("gives seconds", '"1d"', "86400", "the duration 86400 has no unit"),
    _code("forgets return", "    return builder", "    builder", "return builder.build()"),
    _code("forgets an import", "import Count, ", "import ", "NameError", "shop_job.py:18"),
    _code("gives a class instead of an aggregate", "Count()", "Count", "as in Count()"),
    _edited(
        "turns inferSchema off",
        "conf/feeds/orders.yaml",
        'inferSchema: "true"',
        'inferSchema: "false"',
        78,
        "landed as text",
        "`schema:`",
    ),
    _edited(
        "misspells the key",
        "conf/feeds/orders.yaml",
        "key: customer",
        "key: custmer",
        78,
        "no column 'custmer'",
        "`key`",
    ),
    _code("compares with null", _WHERE, '.where("country = null")', "write `is null` or `is not null`"),
    _code("writes like in a condition", _WHERE, """.where("country like 'd%'")""", "there is no like, use filter"),
    _code("calls a function in a condition", _WHERE, """.where("upper(country) = 'DE'")""", "there are no functions"),
    _code("adds in a condition", _WHERE, '.where("amount + 1 > 2")', "compute it with select or filter"),
    _code("names the key's column", _WHERE, """.where("customer = 'ann'")""", "it is the key, write key"),
    _code("maps the key's column", _WHERE, ".map_values(lambda row: row.customer)", "it is the key"),
    _code("filters by the key's column", _WHERE, '.filter(lambda key, row: row.customer == "ann")', "it is the key"),
    _code("sums the key's column", 'Sum("amount")', 'Sum("customer")', "it is the key, not a field of the value"),
    _code("selects the key's column", _WHERE, '.select("customer")', "it is the key, write key"),
    _code("names the column of times", _WHERE, '.where("ordered_at > 0")', "the log's own times are called timestamp"),
    _code(
        "compares times with a text",
        _WHERE,
        """.where("timestamp > '2026-11-01'")""",
        "times are landed as epoch milliseconds",
    ),
    _code(
        "takes the length of an advance",
        '"1d", grace="6h")',
        '"1d", grace="6h").advance_by("2d")',
        "at most the size, 1d",
    ),
    _code("forgets grace", ', grace="6h"', "", "missing 1 required keyword-only argument: 'grace'", "shop_job.py"),
    _code("forgets the store", ', store="orders-per-day"', "", "keyword-only argument: 'store'", "shop_job.py"),
    _code("names a store with a blank", '"orders-per-day"', '"orders per day"', "cannot name a store"),
    _code(
        "gives Count a field",
        "Count()",
        'Count("amount")',
        "Count.__init__() takes 1 positional argument",
        "shop_job.py",
    ),
    _code("aggregates rows", 'Sum("amount")', "Max()", "NameError"),
    _code("gives an instance to process", _WHERE, '.process(Slip(), name="slip")', "pass the class"),
    _code("forgets the name of a processor", _WHERE, ".process(Slip)", "keyword-only argument: 'name'"),
    _code(
        "reads a table's key", _TO_STREAM, ".filter(lambda key, row: key.customer > 'a').to_stream()\n", "key, window"
    ),
    _edited(
        "names a file as the module", "conf/jobs/daily_orders.yaml", "shop_job:", "shop_job.py:", 78, "without .py"
    ),
    _edited(
        "gives an output only a name",
        "conf/jobs/daily_orders.yaml",
        "{table: shop.daily_orders}",
        "shop.x",
        78,
        "block of keys",
    ),
    _edited(
        "misspells watermark",
        "conf/jobs/daily_orders.yaml",
        "watermark}",
        "watermarks}",
        78,
        "'records' or 'watermark'",
    ),
    _edited(
        "writes to the home folder",
        "conf/targets/local.yaml",
        "warehouse: w",
        "warehouse: ~/w",
        78,
        "write the whole path",
    ),
    _edited("writes day for 1d", "conf/feeds/orders.yaml", "every: 1d", "every: day", 78, "write it like 15m"),
    _edited(
        "lands a key as a value",
        "conf/feeds/orders.yaml",
        "[order_id,",
        "[customer,",
        78,
        "customer is in both key and value",
    ),
    _edited(
        "misspells the arrival",
        "conf/feeds/orders.yaml",
        "received_at",
        "recieved_at",
        78,
        "no column 'recieved_at'",
        "`arrived_at`",
    ),
    _edited(
        "misspells a value",
        "conf/feeds/orders.yaml",
        "[order_id, amount,",
        "[order, amount,",
        78,
        "no column 'order'",
        "`value`",
    ),
    _edited(
        "makes a mistake in a tab",
        "conf/feeds/orders.yaml",
        "    key: c",
        "\\tkey: c",
        78,
        "conf/feeds/orders.yaml, line",
    ),
    Case(
        "a newcomer lands a job", "land daily_orders", 78, ("daily_orders is a job: `rewindow run daily_orders`",), shop
    ),
    Case("a newcomer runs a feed", "run orders", 78, ("orders is a feed: `rewindow land orders`",), shop),
    Case(
        "a newcomer looks at a feed",
        "head orders",
        2,
        ("is neither a job (counts, daily_orders) nor an output table",),
        shop,
    ),
    Case("a newcomer looks at no rows", "head daily_orders --limit 0", 2, ("--limit",), shop),
    Case("a newcomer looks before the run", "head daily_orders", 0, ("shop.daily_orders does not exist yet",), shop),
    Case(
        "a newcomer runs before landing", "run daily_orders", 66, ("never landed", "`rewindow land orders` first"), shop
    ),
]
