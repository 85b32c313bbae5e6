"""`rewindow why` of one of several outputs: its dropped records are those that its own nodes dropped, each once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from rewindow.contracts.instants import instant
from tests.bad_input.scene import CSV_FEED, Bench, project_of, topology, without_spark
from tests.ingest.local_engine import HOUR

FEED = CSV_FEED.replace("t TIMESTAMP", "t TIMESTAMP, x BIGINT, got TIMESTAMP")
FEED = FEED.replace("[t]", "[x]").replace("arrived_at: t", "arrived_at: got")
TABLES = ("tumbling", "tens", "hopping", "sliding", "sessions", "updates", "filtered", "pairs")
MODULE = topology(
    """
orders = builder.stream("orders")
kinds = {
    "tumbling": TimeWindows.of("1h", grace="1h"),
    "tens": TimeWindows.of("10m", grace="0s"),
    "hopping": TimeWindows.of("2h", grace="10m").advance_by("1h"),
    "sliding": SlidingWindows.of("30m", grace="10m"),
    "sessions": SessionWindows.of("20m", grace="10m"),
}
for name, windows in kinds.items():
    counts = orders.group_by_key().windowed_by(windows).count(store=name)
    counts.suppress(until_window_closes()).to_stream().to(name)
orders.group_by_key().windowed_by(kinds["hopping"]).count(store="updates").to_stream().to("updates")
few = orders.where("x > 3").group_by_key().windowed_by(TimeWindows.of("1h", grace="5m")).count(store="filtered")
few.suppress(until_window_closes()).to_stream().to("filtered")
high = orders.where("x > 1000")
orders.join(high, lambda one, other: one, JoinWindows.of("1m", grace="0s"), name="both").to("pairs")
"""
)
START = 1_767_571_200_000
MINUTE = 60_000
USERS = ("ann", "bob")
COUNT = 160
INCLUSIVE = ("sliding", "sessions")
GAP = 20 * MINUTE
STEP = 7
"""Every so many windows are asked about: each takes a replay."""


def made() -> list[tuple[str, int, int]]:
    """Return records as user, time and x, in the order of their arrival: every fifth is up to five hours late."""
    seeded = random.Random(7)
    found = []
    for number in range(COUNT):
        late = seeded.randrange(5 * 60) if number % 5 == 4 else seeded.randrange(12)
        at = START + (6 * 60 + number * 6 - late) * MINUTE
        found.append((seeded.choice(USERS), at, seeded.randrange(10)))
    return found


RECORDS = made()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = project_of(tmp_path_factory.mktemp("dropped") / "project", FEED, MODULE, *TABLES)
    half = COUNT // 2
    with without_spark():
        for number in range(2):
            rows = [
                f"{user},{iso(at)},{x},{iso(START + 30 * HOUR + (number * half + n) * 1000)}\n"
                for n, (user, at, x) in enumerate(RECORDS[number * half : (number + 1) * half])
            ]
            bench.write(f"data/{number}.csv", "user,t,x,got\n" + "".join(rows))
            bench.done("land orders", "run counts")
        yield bench


def iso(ms: int) -> str:
    return instant(ms).replace(" ", "T")


def facts_of(shop: Bench, *words: str) -> dict[str, Any]:
    return shop.json(f"why {' '.join(words)}")


def windows_of(shop: Bench, table: str, user: str) -> list[int]:
    """Return the starts of the newest windows with a row."""
    rows = facts_of(shop, f"shop.{table}", user)["rows"]
    return sorted({row["window_start"] for row in rows})


def offsets(records: list[dict[str, Any]]) -> list[int]:
    return [one["offset"] for one in records]


@pytest.mark.parametrize("table", TABLES[:-1])
def test_each_record_of_a_window_is_in_its_row_or_dropped_once(shop: Bench, table: str) -> None:
    dropped = 0
    for user in USERS:
        for start in windows_of(shop, table, user)[::STEP]:
            facts = facts_of(shop, f"shop.{table}", user, "--window", iso(start))
            late, row = offsets([one["record"] for one in facts["late"]]), facts["row"]
            end = row["window_end"] + (table in INCLUSIVE)
            landed = [n for n, (whose, at, _) in enumerate(RECORDS) if whose == user and start <= at < end]
            let_go = [n for n in landed if table == "filtered" and RECORDS[n][2] <= 3]
            near = late if table != "sessions" else [n for n in late if n in landed]
            assert len(late) == len(set(late)), facts["late"]
            assert row["value"] + len(near) + len(let_go) == len(landed), (row, late, landed)
            assert sorted(offsets(facts["unused"])) == (let_go if table == "filtered" else [])
            if facts["is_exact"] and table != "sliding":  # whose windows may be copied from others
                assert sorted([*offsets(facts["records"]), *near, *let_go]) == landed
            nodes = {one["node"] for one in facts["late"]}
            assert nodes <= {table}, nodes
            if table == "sessions":
                assert_would_be_longer(
                    start, row["window_end"], {one["record"]["timestamp_ms"] for one in facts["late"]}
                )
            dropped += len(late)
    assert dropped, table


def assert_would_be_longer(start: int, end: int, late: set[int]) -> None:
    """Check that a session lacks only the records that would have made it longer."""
    times = sorted({start, end, *late})
    assert all(
        later - time <= GAP for time, later in pairwise(times) if not (start <= time <= end and start <= later <= end)
    ), times


def test_a_row_that_a_run_wrote_is_not_said_to_lack_what_came_later(shop: Bench) -> None:
    start = START + 13 * HOUR
    facts = facts_of(shop, "shop.updates", "ann", "--run", "main/1", "--window", iso(start))
    newest = facts_of(shop, "shop.updates", "ann", "--window", iso(start))
    assert newest["row"]["value"] > facts["row"]["value"]
    assert not facts["unused"]
    assert offsets([one["record"] for one in facts["late"]]) == offsets([one["record"] for one in newest["late"]])


def test_a_join_names_what_was_too_late_to_wait_for_a_partner_and_not_what_other_outputs_dropped(shop: Bench) -> None:
    facts = facts_of(shop, "shop.pairs", "ann", "--missing")
    late = offsets([one["record"] for one in facts["late"]])
    assert facts["why"] == "waiting"
    assert late
    assert len(late) == len(set(late)) < len(facts["records"])
    assert {one["node"] for one in facts["late"]} == {"both-left"}


def test_why_there_is_no_row_names_what_the_own_node_dropped(shop: Bench) -> None:
    rowless, user = 0, "ann"
    starts = {at // (10 * MINUTE) * 10 * MINUTE for whose, at, _ in RECORDS if whose == user}
    for at in sorted(starts - set(windows_of(shop, "tens", user)))[::STEP]:
        facts = facts_of(shop, "shop.tens", user, "--window", iso(at), "--missing")
        late = offsets([one["record"] for one in facts["late"]])
        assert len(late) == len(set(late))
        if facts["why"] == "dropped":
            assert late == offsets(facts["records"])
            assert {one["node"] for one in facts["late"]} == {"tens"}
            rowless += 1
    assert rowless


def test_an_open_window_has_no_dropped_records_of_windows_that_closed_before(shop: Bench) -> None:
    for table in ("hopping", "sliding", "sessions", "tumbling"):
        facts = facts_of(shop, f"shop.{table}", "ann", "--missing")
        assert facts["late"] == [], table
        assert facts["why"] == "open" or table in INCLUSIVE
        assert len(facts["records"]) == sum(one["records"] for one in facts["open_windows"][:1])
