"""A run that takes records and adds no rows says why."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rewindow.app.cli.entry import run_command
from rewindow.errors import HintMessage
from tests.bad_input.newcomer import ROWS_FEED, daily_project
from tests.bad_input.scene import HOUR, T0, Bench, copy_of
from tests.ingest.local_engine import write_rows
from tests.refusals import containing, told

DAY = 24 * HOUR


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory, in_process: None) -> Bench:
    bench = daily_project(tmp_path_factory.mktemp("hints") / "project")
    land(bench, "first", [*range(1, 6)])
    return bench


@pytest.fixture
def bench(landed: Bench, tmp_path: Path) -> Bench:
    return copy_of(landed, tmp_path / "project")


def land(bench: Bench, name: str, days: list[int]) -> None:
    bench.rows(name, [{"user": "ann", "t": T0 + day * DAY, "got": T0 + day * DAY + 1, "x": day} for day in days])
    bench.land("orders")


def hints(bench: Bench, **request: object) -> tuple[HintMessage, ...]:
    return bench.replay("daily_orders", **request).hints


def test_a_condition_that_no_record_satisfies_is_named(bench: Bench) -> None:
    bench.edit("shop_job.py", "x > 0", "x > 1000")
    told(hints(bench), "no-record-passed", filters="'where-1' (where(x > 1000))", others="none", why="")


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
    bench.land("shop")
    hint = told(
        hints(bench), "no-record-passed", records="its 5 records", filters=containing("'known' (stream_table_join")
    )
    assert hint.facts["why"] != ""


def test_a_filter_is_named_and_json_has_the_code_of_the_hint(bench: Bench) -> None:
    bench.edit("shop_job.py", '.where("x > 0")', '.filter(lambda key, row: False, name="big-orders")')
    assert bench.json("run daily_orders")["summary"]["hint_codes"] == ["no-record-passed"]


@pytest.mark.parametrize("by_watermark", [True, False])
def test_open_windows_are_named_with_when_one_closes_and_what_advances_time(
    bench: Bench, *, by_watermark: bool
) -> None:
    bench.edit("shop_job.py", '"1d", grace="6h"', '"52w", grace="6h"')
    if not by_watermark:
        bench.edit("conf/jobs/daily_orders.yaml", "semantics: {stream_time_from: watermark}", "")
    hint = told(hints(bench), "results-wait", waits="1 result waits")
    where = str(hint.facts["where"])
    assert ("closes 6h after" in where, "stream_time_from" in where) == (True, not by_watermark)


def test_a_store_that_spills_is_named_with_the_setting_that_avoids_it(bench: Bench) -> None:
    assert hints(bench) == ()
    bench.edit("conf/jobs/daily_orders.yaml", "feed:", "limits: {store_memory: 1}\nfeed:")
    bench.write("conf/targets/local.yaml", "target: local\nwarehouse: warehouse\nexecution: record\n")
    told(hints(bench, branch="small"), "stores-spilled", job="daily_orders")


def test_records_that_wait_for_the_watermark_are_not_the_time(bench: Bench) -> None:
    bench.edit("shop_job.py", '"1d", grace="6h"', '"52w", grace="6h"')
    bench.edit("conf/jobs/daily_orders.yaml", "semantics: {stream_time_from: watermark}", "")
    bench.edit("conf/feeds/orders.yaml", "logs:", "lag: 10s\nlogs:")
    land(bench, "second", [6])
    told(hints(bench), "results-wait", where=containing("The feed's watermark is at"))


@pytest.mark.parametrize(
    ("window", "records", "why"),
    [("2023-11-14", "1 record of the key", "waits behind"), ("2023-11-15", "2 records of the key", "are later than")],
)
def test_records_behind_one_that_waits_for_the_watermark_are_not_called_later(
    behind: Bench, window: str, records: str, why: str
) -> None:
    told(
        behind.why(f"daily_orders ann --window {window}"), "key-records-not-taken", records=records, why=containing(why)
    )


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory, in_process: None) -> Bench:
    bench = daily_project(tmp_path_factory.mktemp("behind") / "project")
    bench.edit("conf/feeds/orders.yaml", "logs:", "lag: 5h\nlogs:")
    times = (T0 + 20 * HOUR, T0 + 10 * HOUR, T0)  # in the order of arrival
    bench.rows("ann", [{"user": "ann", "t": time, "got": T0 + at, "x": 1} for at, time in enumerate(times)])
    bench.done("land orders", "run daily_orders")
    return bench


def test_a_run_that_takes_nothing_names_what_waits(tmp_path: Path, in_process: None) -> None:
    bench = daily_project(tmp_path / "project")
    bench.edit("conf/feeds/orders.yaml", "logs:", "max_task_idle: forever\nlogs:")
    bench.rows("ann", [{"user": user, "t": T0, "got": T0, "x": 1} for user in ("ann", "bob")])
    bench.done("land orders", "run daily_orders")
    bench.rows("late", [{"user": "cyd", "t": T0 + DAY, "got": T0 + DAY, "x": 1}])
    bench.land("orders")
    told(hints(bench), "run-took-no-records", watermark="2023-11-14 22:00:00Z", job="daily_orders")
    reasons = bench.why("daily_orders cyd")
    told(reasons, "key-records-not-taken", records="1 record of the key", why=containing("later"))
    told(reasons, "watermark-holds-back", reason=containing("waits for orders-0"))
    assert not any("stream_time_from" in reason for reason in reasons)


def test_records_that_are_all_late_are_counted_by_reason(bench: Bench) -> None:
    assert hints(bench) == ()
    land(bench, "second", [1, 1, 2])
    told(hints(bench), "all-records-dropped", records="its 3 records", dropped="3 late (window-closed)")


def test_a_filter_below_an_aggregate_is_named(bench: Bench) -> None:
    bench.edit("shop_job.py", ".to_stream()\n", ".to_stream().filter(lambda key, row: False)\n")
    told(hints(bench), "results-wait", others=containing("'filter-1' (filter)"))


def test_a_run_without_records_names_what_is_wrong_with_the_file_of_its_feed(bench: Bench) -> None:
    assert hints(bench) == ()
    assert "Published" not in bench.done("run daily_orders").out
    bench.edit("conf/feeds/orders.yaml", "partitions:", "partitons:")
    reason = bench.said("run daily_orders")["reason"]
    assert (reason.code, "partitons" in reason) == ("all-epochs-taken", True)


def test_a_run_that_only_publishes_what_a_killed_call_had_committed_says_so(bench: Bench) -> None:
    bench.done("run daily_orders")
    (output,) = bench.root.glob("warehouse/shop/*/_delta_log")
    max(output.glob("*.json")).unlink()
    assert bench.json("run daily_orders")["lagged"] == ["output/daily-orders"]


def test_explain_names_an_output_whose_type_is_undeclared(bench: Bench) -> None:
    assert bench.json("explain daily_orders")["undeclared"] == []
    bench.edit("shop_job.py", ".to_stream()\n", '.to_stream().map_values(lambda row: {"x": row.amount})\n')
    (hint,) = bench.json("explain daily_orders")["undeclared"]
    assert hint in bench.done("explain daily_orders").out


def test_explain_shows_the_topology_before_the_first_landing(bench: Bench) -> None:
    shutil.rmtree(bench.warehouse)
    explained = bench.json("explain daily_orders")
    assert (explained["landed"], explained["outputs"][0]["table"]) == (False, "shop/daily_orders")
    assert not bench.warehouse.exists()


@pytest.mark.parametrize("words", [("schema", "foo"), ("head", "counts", "--limit", "x")])
def test_a_wrong_word_is_refused_without_the_words_of_a_library(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert run_command(list(words)) == 2
    answer = capsys.readouterr().err
    assert "Value error" not in answer
    assert "Input should" not in answer
