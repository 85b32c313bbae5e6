"""`why --missing` of keys in joins: no partner, or still waiting for one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.instants import instant
from rewindow.errors import ReasonMessage
from tests.bad_input.newcomer import ROWS_FEED, daily_project
from tests.bad_input.scene import HOUR, T0, topology, without_spark
from tests.refusals import containing, told

EITHER = "def either(one, other):\n    return one\n"
TABLE = 'orders.join(orders.where("x > 5").to_table(store="big"), either).to("daily-orders")'
STREAMS = (
    'orders.left_join(orders.where("x > 5"), either, JoinWindows.of("1h", grace="10m"), name="both").to("daily-orders")'
)


INNER = (
    'orders.join(builder.stream("others"), either, JoinWindows.of("1h", grace="1h"), name="both").to("daily-orders")'
)
OTHERS = "  others: {source: {path: others, format: parquet}, key: user, timestamp: t, arrived_at: got, value: [x]}\n"


def missing(tmp_path: Path, join: str) -> list[ReasonMessage]:
    with without_spark():
        bench = daily_project(tmp_path / "project")
        if join == INNER:
            bench.write("conf/feeds/orders.yaml", ROWS_FEED + OTHERS)
            others = [{"user": "ann", "t": T0, "got": T0, "x": 1}]
            (bench.root / "others").mkdir()
            pq.write_table(pa.Table.from_pylist(others), bench.root / "others/one.parquet")
        bench.write("shop_job.py", topology('orders = builder.stream("orders")', join, before=EITHER))
        bench.rows("one", [{"user": user, "t": T0, "got": T0, "x": x} for user, x in (("ann", 9), ("bob", 1))])
        bench.done("land orders", "run daily_orders")
        return bench.why("daily_orders bob")


def test_a_record_without_a_partner_in_a_table_is_not_called_filtered(tmp_path: Path) -> None:
    told(missing(tmp_path, TABLE), "records-without-partner", job="daily_orders", store="big")


def test_a_record_that_waits_for_a_partner_has_a_deadline(tmp_path: Path) -> None:
    told(missing(tmp_path, STREAMS), "join-waits-for-partner", time=instant(T0 + HOUR + HOUR // 6))


def test_the_log_without_a_partner_is_named(tmp_path: Path) -> None:
    told(missing(tmp_path, INNER), "join-needs-partner", node="both", none=containing("others"))
