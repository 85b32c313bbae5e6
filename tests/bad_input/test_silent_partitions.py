"""Results wait for a partition to which no records come: `plan`, `status` and the report say so. None of it needs Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.bad_input.scene import Say

LATER = "order_id,customer,amount,ordered_at,received_at\n9,ann,12.5,2026-01-09T08:15:00Z,2026-01-09T08:16:00Z\n"
WAITS = (
    "2 results of orders-per-day-suppress wait for orders-0 (silent since 2026-01-06 09:30:00Z), "
    "orders-1 (silent since 2026-01-07 18:45:00Z)"
)
REACHED = (
    "2 results of orders-per-day-suppress wait for orders-0 (no record after 2026-01-06 09:30:00Z reached it), "
    "orders-1 (no record after 2026-01-07 18:45:00Z reached it)"
)
BY_JOB = "`semantics: {stream_time_from: watermark}` in the job's file"
BY_FEED = "`max_task_idle: 2h`, or another duration, in the feed's file"


@pytest.fixture
def silent(say: Say, shop: Path) -> Path:
    """The project, with a record of one partition three days after all others, landed and run with Kafka's clocks."""
    job = shop / "conf/jobs/daily_orders.yaml"
    job.write_text(re.sub("semantics:.*\n", "", job.read_text()))
    (shop / "data/orders/later.csv").write_text(LATER)
    assert say("land", "orders")[0] == 0
    assert say("run", "daily_orders")[0] == 0
    return shop


def test_plan_names_the_partitions_that_results_wait_for_and_what_helps(say: Say, silent: Path) -> None:
    code, text = say("plan", "daily_orders")
    assert code == 0
    assert f"{WAITS}. {BY_JOB}" in text
    assert "max_task_idle" not in text
    (found,) = json.loads(say("plan", "daily_orders", "--json")[1])["silent"]
    assert (found["results"], found["partitions"]) == (2, ["orders-0", "orders-1"])


def test_status_notes_it_and_alerts_beyond_the_bound_in_the_jobs_file(say: Say, silent: Path) -> None:
    code, text = say("status")
    assert code == 0
    assert f"note: job daily_orders: {WAITS}: `rewindow report daily_orders`. {BY_JOB}" in text
    assert "all is well, with 1 note." in text
    job = silent / "conf/jobs/daily_orders.yaml"
    before = job.read_text()
    job.write_text(before + "alerts: {silent: 3d}\n")
    assert say("status")[0] == 0
    job.write_text(before + "alerts: {silent: 1d}\n")
    code, text = say("status")
    assert code == 1
    assert f"alert: job daily_orders: {WAITS}: 2d22h45m behind the feed, at most 1d are allowed" in text


def test_status_does_not_advise_what_the_jobs_file_already_says(say: Say, silent: Path) -> None:
    job = silent / "conf/jobs/daily_orders.yaml"
    job.write_text(job.read_text() + "semantics: {stream_time_from: watermark}\n")
    code, text = say("status")
    assert (code, "the next run is refused (76)" in text) == (1, True), text
    assert BY_JOB not in text


def test_the_verdict_of_the_report_warns_of_it(say: Say, silent: Path) -> None:
    _, text = say("report", "daily_orders", "--json")
    headline, *others = json.loads(text)["verdict"]
    assert headline["level"] == "warning"
    assert headline["text"].endswith("up to date with all that is landed; results wait for silent partitions")
    assert f"{WAITS}. {BY_JOB}" in "".join(one["text"] for one in others)


def test_what_helps_helps(say: Say, silent: Path) -> None:
    job = silent / "conf/jobs/daily_orders.yaml"
    job.write_text(job.read_text() + "semantics: {stream_time_from: watermark}\n")
    (silent / "data/orders/last.csv").write_text(LATER.replace("9,ann", "10,ann").replace("-09T", "-10T"))
    assert say("land", "orders")[0] == 0
    code, text = say("run", "daily_orders", "--accept-changes")
    assert code == 0, text
    assert "wait for" not in say("plan", "daily_orders")[1]
    assert "all is well." in say("status")[1]


def test_a_record_that_is_filtered_before_the_window_does_not_end_the_silence(say: Say, silent: Path) -> None:
    job = silent / "jobs/daily_orders.py"
    job.write_text(job.read_text().replace('.stream("orders")', '.stream("orders").where("amount > 0", name="paid")'))
    filtered = LATER.replace("9,ann,12.5", "10,bob,-1.0").replace("08:16", "08:17")
    (silent / "data/orders/filtered.csv").write_text(filtered)
    assert say("land", "orders", "--watermark", "2026-01-09T08:16:00Z")[0] == 0
    assert say("run", "daily_orders", "--accept-changes")[0] == 0
    code, text = say("plan", "daily_orders")
    assert (code, f"{REACHED}. {BY_JOB}" in text) == (0, True), text
    _, text = say("why", "shop.daily_orders", "bob", "--missing")
    assert "is at 2026-01-09 08:15:00Z, but did not reach orders-per-day-suppress" in text
    assert BY_JOB in text
    assert "max_task_idle" not in text


def test_a_partition_that_holds_back_the_feeds_watermark_is_named(say: Say, silent: Path) -> None:
    feed = silent / "conf/feeds/orders.yaml"
    feed.write_text(feed.read_text() + "max_task_idle: forever\n")
    assert say("land", "orders", "--new-generation")[0] == 0
    assert say("run", "daily_orders", "--branch", "held")[0] == 0
    _, text = say("plan", "daily_orders", "--branch", "held")
    assert "wait for orders-0, silent since 2026-01-06 09:30:00Z" in text or "waits for orders-0, silent since" in text
    assert BY_FEED in text
    _, text = say("why", "daily_orders", "ann", "--missing", "--branch", "held")
    assert f"The feed's watermark waits for orders-0, whose newest record is at 2026-01-06 09:30:00Z. {BY_FEED}" in text
    assert "3 records of the key are later than the feed's watermark: a run takes them once a landing raises it" in text


def test_results_whose_own_later_records_wait_for_the_watermark_are_counted(say: Say, silent: Path) -> None:
    """The window of eve closes below the watermark, but only her next record would close it, and that one is held back."""
    feed = silent / "conf/feeds/orders.yaml"
    feed.write_text(feed.read_text() + "max_task_idle: forever\n")
    head, row = LATER.splitlines()
    eve = [row.replace("9,ann", f"{n},eve").replace("01-09", f"01-{n:02}") for n in (5, 10)]
    (silent / "data/orders/eve.csv").write_text("\n".join((head, *eve)) + "\n")
    assert say("land", "orders", "--new-generation")[0] == 0
    assert say("run", "daily_orders", "--branch", "held")[0] == 0
    (found,) = json.loads(say("plan", "daily_orders", "--branch", "held", "--json")[1])["silent"]
    _, shown = say("state", "show", "daily_orders", "orders-per-day-suppress", "--branch", "held", "--json")
    assert found["results"] == len(json.loads(shown)["entries"]), shown
    assert found["partitions"] == ["orders-0"]
    assert BY_FEED in found["fix"]
    _, text = say("why", "daily_orders", "bob", "--missing", "--branch", "held")
    assert "Only records of partition 0 advance it" in text
    assert text.index(BY_FEED) < text.index(BY_JOB), "neither helps without the other"


def test_a_lag_of_the_feed_is_no_silent_partition(say: Say, silent: Path) -> None:
    feed = silent / "conf/feeds/orders.yaml"
    feed.write_text(feed.read_text() + "lag: 5d\n")
    assert say("land", "orders", "--new-generation")[0] == 0
    assert say("run", "daily_orders", "--branch", "lags")[0] == 0
    assert "silent" not in say("plan", "daily_orders", "--branch", "lags")[1]
    text = say("why", "daily_orders", "ann", "--missing", "--branch", "lags")[1]
    assert "5 records of the key are later than the feed's watermark" in text
    assert "`lag: 5d` behind its newest record" in text


def test_why_counts_only_the_landings_that_have_records_of_the_keys_partition(say: Say, shop: Path) -> None:
    job = shop / "conf/jobs/daily_orders.yaml"
    job.write_text(re.sub("semantics:.*\n", "", job.read_text()))
    assert say("land", "orders")[0] == 0
    assert say("run", "daily_orders")[0] == 0
    (shop / "data/orders/later.csv").write_text(LATER)
    assert say("land", "orders")[0] == 0
    told = {key: say("why", "daily_orders", key, "--missing")[1] for key in ("ann", "bob")}
    assert "1 landing that reaches it waits to be replayed: `rewindow run daily_orders`" in told["ann"]
    assert "to be replayed" not in told["bob"], told["bob"]
    assert "Only records of partition 0 advance it" in told["bob"]
    assert BY_JOB in told["bob"]
