"""A small project with a DAG file: one feed lands orders by day, another lands the same orders in one landing per call."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

ROOT = Path(__file__).resolve().parent.parent.parent
DAYS = 4

FEED = """\
feed: orders
partitions: 2
landing: {every: 1d, watermark: interval_end}
logs:
  orders:
    source: {format: csv, path: data/orders.csv, options: {header: "true", inferSchema: "true"}}
    key: customer
    value: [order_id, amount]
    timestamp: ordered_at
    arrived_at: received_at
"""
JOB = """\
job: daily_orders
topology: jobs.daily_orders:build_topology
feed: orders
outputs:
  daily-orders: {table: shop.daily_orders}
semantics: {stream_time_from: watermark}
schedule: "@daily"
"""
WEEKLY = (
    JOB.replace("daily_orders\n", "weekly_orders\n", 1)
    .replace("shop.daily", "shop.weekly")
    .replace("@daily", "@weekly")
)
TOPOLOGY = """\
from rewindow import Count, StreamsBuilder, Sum, TimeWindows, Topology, until_window_closes


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("orders")
        .group_by_key()
        .windowed_by(TimeWindows.of("1d", grace="0s"))
        .aggregate({"orders": Count(), "amount": Sum("amount")}, store="orders-per-day")
        .suppress(until_window_closes())
        .to_stream()
        .to("daily-orders")
    )
    return builder.build()
"""
DAGS = """\
from pathlib import Path

from rewindow.airflow.dags import make_dags

globals().update(make_dags(Path(__file__).parent.parent))
"""


def make_shop(root: Path, *, days: int = DAYS, needs_jvm: bool = True) -> Path:
    """Write the project into an existing folder, and return the folder.

    Commands that need a JVM take longer, so tests can interrupt them. Otherwise they read Parquet and run inline.
    """
    files = {
        "conf/feeds/orders.yaml": FEED,
        "conf/feeds/calls.yaml": FEED.replace("feed: orders", "feed: calls").replace(
            "landing: {every: 1d, watermark: interval_end}\n", ""
        ),
        "conf/jobs/daily_orders.yaml": JOB,
        "conf/jobs/any_orders.yaml": JOB.replace("job: daily_orders", "job: any_orders")
        .replace("feed: orders", "feed: calls")
        .replace("shop.daily_orders", "shop.any_orders")
        .replace('schedule: "@daily"\n', ""),
        "jobs/daily_orders.py": TOPOLOGY,
        "dags/shop.py": DAGS,
        "data/orders.csv": orders(days),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "conf/targets").mkdir()
    if needs_jvm:
        target = (ROOT / "conf/targets/local.yaml").read_text()
        (root / "conf/targets/local.yaml").write_text(f"{target.rstrip()}\ninline: 0\n")
        return root
    _as_parquet(root)
    (root / "conf/targets/local.yaml").write_text((ROOT / "conf/targets/local.yaml").read_text())
    return root


def _as_parquet(root: Path) -> None:
    """Replace the CSV file by a Parquet file with the same rows, in both feeds."""
    rows = csv.read_csv(root / "data/orders.csv")
    utc = pa.timestamp("ms", "UTC")
    for name in ("ordered_at", "received_at"):
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.timestamp("ms")).cast(utc))
    pq.write_table(rows, root / "data/orders.parquet")
    old = 'format: csv, path: data/orders.csv, options: {header: "true", inferSchema: "true"}'
    for file in (root / "conf/feeds").iterdir():
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, "format: parquet, path: data/orders.parquet"))


def orders(days: int = DAYS) -> str:
    """Return ten orders for each of the first days of January 2026, two hours apart, each received ten minutes later."""
    lines = ["order_id,customer,amount,ordered_at,received_at"]
    for number in range(days * 10):
        day, hour = 1 + number // 10, 2 * (number % 10)
        lines.append(
            f"{number},{'abc'[number % 3]},{number}.5,2026-01-{day:02}T{hour:02}:10:00,2026-01-{day:02}T{hour:02}:20:00"
        )
    return "\n".join(lines) + "\n"
