"""`why --missing` of a result that `until_time_limit` holds: the limit counts from when the result was buffered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.bad_input.scene import CSV_FEED, Bench, project_of, topology, without_spark
from tests.bad_input.test_why_windows import DAY, at

DAILY = f"{CSV_FEED}landing: {{every: 1d}}\n"
MODULE = topology(
    """
grouped = builder.stream("orders").group_by_key()
counts = grouped.windowed_by(TimeWindows.of("1d", grace="0s")).count(store="windows")
counts.suppress(until_time_limit("30m"), name="slow-windows").to_stream().to("windowed")
grouped.count(store="totals").suppress(until_time_limit("30m"), name="slow").to_stream().to("plain")
"""
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = project_of(tmp_path_factory.mktemp("limits") / "project", DAILY, MODULE, "windowed", "plain")
    rows = [("ann", "16:10"), ("bob", "16:15"), ("ann", "16:20"), ("bob", "16:25")]
    bench.write("data/one.csv", "user,t\n" + "".join(f"{user},{DAY}T{time}:00Z\n" for user, time in rows))
    with without_spark():
        bench.done("land orders", "run counts")
        yield bench


def missing(shop: Bench, table: str, *more: str) -> dict[str, Any]:
    return shop.json(f"why shop.{table} ann --missing {' '.join(more)}")


@pytest.mark.parametrize("more", [(), ("--window", DAY)])
def test_a_window_waits_for_the_limit_after_its_first_update_not_after_its_end(
    shop: Bench, more: tuple[str, ...]
) -> None:
    facts = missing(shop, "windowed", *more)
    assert (facts["why"], facts["closes_at_ms"], facts["clock_ms"]) == ("open", at("16:40"), at("16:25"))


def test_a_plain_table_says_until_when_its_result_waits(shop: Bench) -> None:
    facts = missing(shop, "plain")
    assert (facts["why"], facts["closes_at_ms"]) == ("waiting", at("16:40"))


def test_what_no_buffer_holds_has_no_time_at_which_it_is_final(shop: Bench) -> None:
    facts = shop.json("why shop.windowed eve --missing")
    assert (facts["why"], facts["closes_at_ms"], facts["open_windows"]) == ("never_landed", None, [])
