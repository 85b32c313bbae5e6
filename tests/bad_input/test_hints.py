"""A run that takes records and adds no rows says why."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.cli.entry import run_command
from tests.bad_input.newcomer import ROWS_FEED, daily_project
from tests.bad_input.scene import HOUR, T0, Bench, without_spark
from tests.ingest.local_engine import write_rows

DAY = 24 * HOUR


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with without_spark():
        bench = daily_project(tmp_path / "project")
        land(bench, "first", [*range(1, 6)])
        yield bench


def land(bench: Bench, name: str, days: list[int]) -> None:
    bench.rows(name, [{"user": "ann", "t": T0 + day * DAY, "got": T0 + day * DAY + 1, "x": day} for day in days])
    assert bench.run("land", "orders").code == 0


def ran(bench: Bench, *words: str) -> tuple[str, list[str]]:
    """Run the job twice the same way, for people and as JSON."""
    text = bench.run("run", "daily_orders", *words)
    assert text.code == 0, text.err
    return text.out, [line.strip() for line in text.out.splitlines() if "got no rows" in line]


def test_a_condition_that_no_record_satisfies_is_named(bench: Bench) -> None:
    bench.edit("shop_job.py", "x > 0", "x > 1000")
    _, hints = ran(bench)
    assert hints == ["daily-orders got no rows from its 5 records: none passed 'where-1' (where(x > 1000))."]


def test_an_inner_join_without_partners_is_named_and_its_table_counts_for_nothing(bench: Bench) -> None:
    log = ROWS_FEED.splitlines(keepends=True)[-1]
    both = ROWS_FEED.replace("feed: orders", "feed: shop") + log.replace("orders:", "users:").replace(
        "path: raw", "path: users/raw"
    )
    bench.write("conf/feeds/shop.yaml", both)
    bench.edit("conf/jobs/daily_orders.yaml", "feed: orders", "feed: shop")
    bench.edit(
        "shop_job.py",
        '.where("x > 0")',
        '.join(builder.table("users", store="users"), lambda row, _: row, name="known")',
    )
    write_rows(bench.root / "users", "all", [{"user": "ANN", "t": T0, "got": T0, "x": 1}])
    assert bench.run("land", "shop").code == 0
    _, hints = ran(bench)
    (hint,) = hints
    assert hint.startswith(
        "daily-orders got no rows from its 5 records: none passed 'known' (stream_table_join(inner, table="
    )
    assert hint.endswith(". An inner join leaves out records without a partner.")


def test_a_filter_is_named_and_json_has_the_hint(bench: Bench) -> None:
    bench.edit("shop_job.py", '.where("x > 0")', '.filter(lambda key, row: False, name="big-orders")')
    answer = bench.run("run", "daily_orders", "--json")
    summary: dict[str, Any] = json.loads(answer.out)["summary"]
    assert summary["hints"] == ["daily-orders got no rows from its 5 records: none passed 'big-orders' (filter)"]


def test_open_windows_are_named_with_when_one_closes(bench: Bench) -> None:
    bench.edit("shop_job.py", '"1d", grace="6h"', '"52w", grace="6h"')
    out, hints = ran(bench)
    assert len(hints) == 1, out
    assert "1 result waits for open windows. Time is " in hints[0]
    assert "and a window closes 6h after its end" in hints[0]
    assert (
        "`rewindow run daily_orders --final` closes all, and seals the branch, which then takes no more runs."
        in hints[0]
    )
    assert "Only records of the same partition" not in hints[0]


def test_a_store_that_spills_is_named_with_the_setting_that_avoids_it(bench: Bench) -> None:
    _, before = ran(bench)
    bench.edit("conf/jobs/daily_orders.yaml", "feed:", "limits: {store_memory: 1}\nfeed:")
    bench.write("conf/targets/local.yaml", "target: local\nwarehouse: warehouse\nexecution: record\n")
    answer = bench.run("run", "daily_orders", "--branch", "small", "--json")
    assert answer.code == 0, answer
    spilled = [hint for hint in json.loads(answer.out)["summary"]["hints"] if "spilled to disk" in hint]
    assert len(spilled) == 1, answer.out
    assert "`limits: {store_memory: ...}` in conf/jobs/daily_orders.yaml" in spilled[0]
    assert not any("spilled" in line for line in before)


def test_time_that_only_records_advance_is_explained(bench: Bench) -> None:
    bench.edit("shop_job.py", '"1d", grace="6h"', '"52w", grace="6h"')
    bench.edit("conf/jobs/daily_orders.yaml", "semantics: {stream_time_from: watermark}", "")
    _, (hint,) = ran(bench)
    assert "Only records of the same partition advance time: `semantics: {stream_time_from: watermark}`" in hint


def test_records_that_wait_for_the_watermark_are_not_the_time(bench: Bench) -> None:
    bench.edit("shop_job.py", '"1d", grace="6h"', '"52w", grace="6h"')
    bench.edit("conf/jobs/daily_orders.yaml", "semantics: {stream_time_from: watermark}", "")
    bench.edit("conf/feeds/orders.yaml", "logs:", "lag: 10s\nlogs:")
    land(bench, "second", [6])
    _, (hint,) = ran(bench)
    assert "The feed's watermark is at" in hint, hint
    assert "waits for it), and a window closes 6h after its end" in hint, hint


@pytest.mark.parametrize(
    ("window", "said"),
    [
        (
            "2023-11-14",
            "1 record of the key waits behind records of the partition that are later than the feed's watermark",
        ),
        (
            "2023-11-15",
            "2 records of the key are later than the feed's watermark, or wait behind such records of the partition",
        ),
    ],
)
def test_records_behind_one_that_waits_for_the_watermark_are_not_called_later(
    tmp_path: Path, window: str, said: str
) -> None:
    with without_spark():
        bench = daily_project(tmp_path / "project")
        bench.edit("conf/feeds/orders.yaml", "logs:", "lag: 5h\nlogs:")
        times = (T0 + 20 * HOUR, T0 + 10 * HOUR, T0)  # in the order of arrival
        bench.rows("ann", [{"user": "ann", "t": time, "got": T0 + at, "x": 1} for at, time in enumerate(times)])
        for words in (("land", "orders"), ("run", "daily_orders")):
            assert bench.run(*words).code == 0
        why = bench.run("why", "daily_orders", "ann", "--missing", "--window", window)
    assert said in why.out, why


def test_a_run_that_takes_nothing_names_what_waits(tmp_path: Path) -> None:
    with without_spark():
        bench = daily_project(tmp_path / "project")
        bench.edit("conf/feeds/orders.yaml", "logs:", "max_task_idle: forever\nlogs:")
        bench.rows("ann", [{"user": user, "t": T0, "got": T0, "x": 1} for user in ("ann", "bob")])
        for words in (("land", "orders"), ("run", "daily_orders")):
            assert bench.run(*words).code == 0
        bench.rows("late", [{"user": "cyd", "t": T0 + DAY, "got": T0 + DAY, "x": 1}])
        assert bench.run("land", "orders").code == 0
        answer = bench.run("run", "daily_orders")
        why = bench.run("why", "daily_orders", "cyd", "--missing")
    assert answer.code == 0, answer.err
    assert "1 record of the key is later than the feed's watermark" in why.out, why
    assert (
        "The feed's watermark is at 2023-11-14 22:00:00Z, which waits for orders-0, whose newest record is at"
        in why.out
    )
    assert "stream_time_from" not in why.out
    waits = "The run took no records: 1 landed record waits for the feed's watermark, which is at 2023-11-14 22:00:00Z."
    assert f"{waits} `rewindow report daily_orders` names what that waits for." in answer.out, answer.out


def test_records_that_are_all_late_are_counted_by_reason(bench: Bench) -> None:
    _, hints = ran(bench)
    assert hints == []
    land(bench, "second", [1, 1, 2])
    out, hints = ran(bench)
    assert hints == ["daily-orders got no rows from its 3 records: all were dropped, 3 late (window-closed)."], out
    assert "late: 3 window-closed" in out


def test_a_filter_below_an_aggregate_is_named(bench: Bench) -> None:
    bench.edit("shop_job.py", ".to_stream()\n", ".to_stream().filter(lambda key, row: False)\n")
    _, (hint,) = ran(bench)
    assert "Any others did not pass 'filter-1' (filter)." in hint


def test_a_run_without_records_or_with_rows_has_no_hint(bench: Bench) -> None:
    _, hints = ran(bench)
    assert hints == []
    out, hints = ran(bench)
    assert "Nothing to run" in out
    assert "Published" not in out
    assert hints == []


def test_a_run_that_has_nothing_to_do_names_what_is_wrong_with_the_file_of_its_feed(bench: Bench) -> None:
    ran(bench)
    bench.edit("conf/feeds/orders.yaml", "partitions:", "partitons:")
    out, _ = ran(bench)
    assert (
        "Nothing to run: branch 'main' has taken all epochs through 1. The next landing of orders is refused: " in out
    )
    assert "partitons is not a known key: did you mean `partitions`?" in out


def test_a_run_that_only_publishes_what_a_killed_call_had_committed_says_so(bench: Bench) -> None:
    ran(bench)
    (output,) = bench.root.glob("warehouse/shop/*/_delta_log")
    max(output.glob("*.json")).unlink()
    out, _ = ran(bench)
    assert out.startswith("Published what an earlier call had committed (1 commit).\nNothing to run")


def test_explain_names_an_output_whose_type_is_undeclared(bench: Bench) -> None:
    assert "declare a NamedTuple" not in bench.run("explain", "daily_orders").out
    bench.edit("shop_job.py", ".to_stream()\n", '.to_stream().map_values(lambda row: {"x": row.amount})\n')
    out = bench.run("explain", "daily_orders").out
    assert "value is undeclared, so it is JSON text: declare a NamedTuple, as in map_values(f, value=Total)" in out


def test_explain_shows_the_topology_before_the_first_landing(bench: Bench) -> None:
    shutil.rmtree(bench.warehouse)
    answer = bench.run("explain", "daily_orders")
    assert answer.code == 0, answer.err
    assert "Feed orders was never landed: types are those of its sources now" in answer.out
    assert "Output daily-orders -> shop/daily_orders: user string, window_start long" in answer.out
    assert not bench.warehouse.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("schema", "foo"), "Invalid value for 'KIND': 'foo' is not one of 'feed', 'job', 'target'"),
        (("head", "counts", "--limit", "x"), "'--limit' / '-n': it should be a valid integer"),
    ],
)
def test_a_wrong_word_is_refused_without_the_words_of_a_library(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert run_command(list(words)) == 2
    answer = capsys.readouterr().err
    assert said in answer
    assert "Value error" not in answer
    assert "Input should" not in answer
