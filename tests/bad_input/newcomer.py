"""Slips in the tutorial's example that `plan` finds before anything is landed: one of each kind that only a project shows."""

from __future__ import annotations

from pathlib import Path

from tests.bad_input.cases import Case, edited
from tests.bad_input.scene import Bench
from tests.refusals import containing

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


def _code(name: str, old: str, new: str, code: str, /, **facts: object) -> Case:
    return Case(f"a newcomer {name}", "plan daily_orders", code, facts, edited("shop_job.py", old, new, shop))


def _feed(name: str, old: str, new: str, code: str, /, **facts: object) -> Case:
    given = edited("conf/feeds/orders.yaml", old, new, shop)
    return Case(f"a newcomer {name}", "plan daily_orders", code, facts, given)


def _called(command: str, code: str, /, **facts: object) -> Case:
    return Case(f"a newcomer calls {command}", command, code, facts, shop)


_WHERE = '.where("amount > 0")'
CASES = [
    _called("plan daily_orders", "feed-never-landed", feed="orders"),
    _called("land daily_orders", "config-file-missing", fix=containing("`rewindow run daily_orders`")),
    _called("run orders", "config-file-missing", fix=containing("`rewindow land orders`")),
    _called("state show daily_orders orders-per-day", "branch-not-run-yet", branch="main"),
    _code("misspells a column in where", _WHERE, '.where("amont > 0")', "unknown-field", field="amont"),
    _code("misspells an attribute", _WHERE, '.process(Slip, name="slip")', "unknown-attribute", field="amout"),
    _code(
        "maps the key",
        _WHERE,
        ".map_values(lambda order: order.customer)",
        "unknown-attribute",
        fix=containing("it is the key"),
    ),
    _code("names a store like its topic", '"orders-per-day"', '"orders"', "named-twice", kind="nodes", name="orders"),
    _code(
        "sums the key", 'Sum("amount")', 'Sum("customer")', "aggregate-field-unknown", fix=containing("it is the key")
    ),
    _code("sums a text", 'Sum("amount")', 'Sum("country")', "landed-field-not-number", field="country"),
    _code("selects an unknown field", _WHERE, '.select("amont")', "selected-field-unknown", field="amont"),
    _code("writes to an unknown output", '.to("daily-orders")', '.to("daily_orders")', "output-not-declared"),
    _code("forgets an output", '        .to("daily-orders")\n', "", "output-not-written", output="daily-orders"),
    _code("forgets return", "    return builder", "    builder", "topology-not-returned", type="NoneType"),
    _code("names a store with a blank", '"orders-per-day"', '"orders per day"', "name-invalid", kind="store"),
    _feed("misspells the key", "key: customer", "key: custmer", "column-unknown", option="key", column="custmer"),
    _feed("misspells the arrival", "received_at", "recieved_at", "column-unknown", option="arrived_at"),
]
"""What verbs and processors refuse is in `tests/dsl` and `tests/streams`, what the loader of topologies does in `test_cli`."""
