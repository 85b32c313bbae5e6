"""`why --missing` of keys in joins: no partner, or still waiting for one."""

from __future__ import annotations

from pathlib import Path

from rewindow.contracts.instants import instant
from tests.bad_input.newcomer import daily_project
from tests.bad_input.scene import HOUR, T0, without_spark

CODE = """\
from rewindow import JoinWindows, StreamsBuilder


def either(one, other):
    return one


def build_topology():
    builder = StreamsBuilder()
    orders = builder.stream("orders")
    {join}
    return builder.build()
"""
TABLE = 'orders.join(orders.where("x > 5").to_table(store="big"), either).to("daily-orders")'
STREAMS = (
    'orders.left_join(orders.where("x > 5"), either, JoinWindows.of("1h", grace="10m"), name="both").to("daily-orders")'
)


def missing(tmp_path: Path, join: str) -> str:
    with without_spark():
        bench = daily_project(tmp_path / "project")
        bench.write("shop_job.py", CODE.format(join=join))
        bench.rows("one", [{"user": user, "t": T0, "got": T0, "x": x} for user, x in (("ann", 9), ("bob", 1))])
        for words in (("land", "orders"), ("run", "daily_orders")):
            answer = bench.run(*words)
            assert answer.code == 0, answer
        answer = bench.run("why", "daily_orders", "bob", "--missing")
    assert answer.code == 0, answer
    return answer.out


def test_a_record_without_a_partner_in_a_table_is_not_called_filtered(tmp_path: Path) -> None:
    said = missing(tmp_path, TABLE)
    assert "- 1 record found no partner in " in said, said
    assert "(stream_table_join(inner, table=big)), unless a condition or function left it out: " in said, said
    assert "`rewindow state show daily_orders big` lists what is joined" in said


def test_a_record_that_waits_for_a_partner_has_a_deadline(tmp_path: Path) -> None:
    said = missing(tmp_path, STREAMS)
    deadline = instant(T0 + HOUR + HOUR // 6)
    assert f" sends a record without a partner once stream time is past {deadline}." in said, said
