"""Results wait for a partition to which no records come: `plan`, `status` and the report say so. None of it needs Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rewindow.app.new_project import Example, create_project
from rewindow.control.health.findings import Level
from tests.bad_input.scene import Bench, copy_of
from tests.refusals import containing, told

LATER = "order_id,customer,amount,ordered_at,received_at\n9,ann,12.5,2026-01-09T08:15:00Z,2026-01-09T08:16:00Z\n"
JOB, FEED = "conf/jobs/daily_orders.yaml", "conf/feeds/orders.yaml"
BY_JOB = "`semantics: {stream_time_from: watermark}` in the job's file"
BY_FEED = "`max_task_idle: 2h`, or another duration, in the feed's file"
WAITING = {"results": "2 results", "node": "orders-per-day-suppress", "partitions": containing("orders-0")}


@pytest.fixture(scope="module")
def silent_template(tmp_path_factory: pytest.TempPathFactory, in_process: None) -> Bench:
    """The project, with a record of one partition three days after all others, landed and run with Kafka's clocks."""
    bench = Bench(tmp_path_factory.mktemp("silent") / "project")
    create_project(bench.root, Example.WINDOWS)
    bench.write(JOB, re.sub("semantics:.*\n", "", (bench.root / JOB).read_text()))
    bench.write("data/orders/later.csv", LATER)
    bench.done("land orders", "run daily_orders")
    return bench


@pytest.fixture
def silent(silent_template: Bench, tmp_path: Path) -> Bench:
    return copy_of(silent_template, tmp_path / "silent")


def add(bench: Bench, path: str, text: str) -> None:
    bench.write(path, (bench.root / path).read_text() + text)


def test_plan_and_the_report_name_the_partitions_that_results_wait_for_and_what_helps(silent_template: Bench) -> None:
    (found,) = silent_template.json("plan daily_orders")["silent"]
    assert (found["results"], found["partitions"]) == (2, ["orders-0", "orders-1"])
    assert (BY_JOB in found["fix"], "max_task_idle" in found["fix"]) == (True, False)
    verdict = silent_template.json("report daily_orders")["verdict"]
    assert verdict[0]["code"] == "headline-results-wait"
    assert "verdict-results-wait" in [sentence["code"] for sentence in verdict]


def test_each_run_that_leaves_results_waiting_says_so_and_only_such_a_run(silent: Bench) -> None:
    silent.write("data/orders/last.csv", LATER.replace("9,ann", "10,ann").replace("-09T", "-10T"))
    silent.done("land orders")
    report = silent.replay("daily_orders")
    waiting = [hint for hint in report.hints if hint.code == "run-leaves-results-waiting"]
    assert report.commit.targets["output/daily-orders"].rows > 0
    assert (len(waiting), BY_JOB in waiting[0].facts["fix"], "orders-1" in waiting[0].facts["waiting"]) == (
        1,
        True,
        True,
    )
    silent.write("data/orders/all.csv", LATER.replace("9,ann", "11,bob").replace("-09T", "-12T"))
    silent.done("land orders")
    assert "run-leaves-results-waiting" not in [hint.code for hint in silent.replay("daily_orders", final=True).hints]


def test_status_notes_it_and_alerts_beyond_the_bound_in_the_jobs_file(silent: Bench) -> None:
    (finding,) = silent.findings()
    assert (finding.level, BY_JOB in str(finding.advice)) == (Level.NOTE, True)
    told([finding.message], "results-wait-for-partitions", beyond="", **WAITING)
    add(silent, JOB, "alerts: {silent: 1d}\n")
    (finding,) = silent.findings()
    assert finding.level == Level.ALERT
    beyond = ": 2d22h45m behind the feed, at most 1d are allowed"
    told([finding.message], "results-wait-for-partitions", beyond=beyond, **WAITING)


def test_status_does_not_advise_what_the_jobs_file_already_says(silent: Bench) -> None:
    add(silent, JOB, "semantics: {stream_time_from: watermark}\n")
    findings = silent.findings()
    told((finding.message for finding in findings), "next-call-refused", exit_code=76)
    assert not any(BY_JOB in str(finding.advice) for finding in findings)


def test_what_helps_helps(silent: Bench) -> None:
    add(silent, JOB, "semantics: {stream_time_from: watermark}\n")
    silent.write("data/orders/last.csv", LATER.replace("9,ann", "10,ann").replace("-09T", "-10T"))
    silent.done("land orders", "run daily_orders --accept-changes")
    assert silent.json("plan daily_orders")["silent"] == []
    assert silent.findings() == []


def test_a_record_that_is_filtered_before_the_window_does_not_end_the_silence(silent: Bench) -> None:
    silent.edit("jobs/daily_orders.py", '.stream("orders")', '.stream("orders").where("amount > 0", name="paid")')
    silent.write("data/orders/filtered.csv", LATER.replace("9,ann,12.5", "10,bob,-1.0").replace("08:16", "08:17"))
    silent.done("land orders --watermark 2026-01-09T08:16:00Z", "run daily_orders --accept-changes")
    (found,) = silent.json("plan daily_orders")["silent"]
    assert (found["results"], BY_JOB in found["fix"]) == (2, True)
    assert "reached it" in found["what"]
    reasons = silent.why("shop.daily_orders bob")
    told(reasons, "result-waits-for-clock", reason=containing("did not reach orders-per-day-suppress"))
    told(reasons, "result-waits-for-clock", reason=containing(BY_JOB))
    assert not any("max_task_idle" in reason for reason in reasons)


def test_a_partition_that_holds_back_the_feeds_watermark_is_named(silent: Bench) -> None:
    """The window of eve closes below the watermark, but only her next record would close it, and that one is held back."""
    add(silent, FEED, "max_task_idle: forever\n")
    head, row = LATER.splitlines()
    eve = [row.replace("9,ann", f"{n},eve").replace("01-09", f"01-{n:02}") for n in (5, 10)]
    silent.write("data/orders/eve.csv", "\n".join((head, *eve)) + "\n")
    silent.done("land orders --new-generation", "run daily_orders --branch held")
    (found,) = silent.json("plan daily_orders --branch held")["silent"]
    stored = silent.json("state show daily_orders orders-per-day-suppress --branch held")["entries"]
    assert (found["results"], found["partitions"], BY_FEED in found["fix"]) == (len(stored), ["orders-0"], True)
    reasons = silent.why("daily_orders ann --branch held")
    for text in ("The feed's watermark waits for orders-0", BY_FEED):
        told(reasons, "result-waits-for-clock", reason=containing(text))
    reasons = "".join(silent.why("daily_orders bob --branch held"))
    assert reasons.index(BY_FEED) < reasons.index(BY_JOB), "neither helps without the other"


def test_a_lag_of_the_feed_is_no_silent_partition(silent: Bench) -> None:
    add(silent, FEED, "lag: 5d\n")
    silent.done("land orders --new-generation", "run daily_orders --branch lags")
    assert silent.json("plan daily_orders --branch lags")["silent"] == []
    told(silent.why("daily_orders ann --branch lags"), "watermark-holds-back", reason=containing("lag: 5d"))


def test_why_counts_only_the_landings_that_have_records_of_the_keys_partition(sample: Bench) -> None:
    sample.write(JOB, re.sub("semantics:.*\n", "", (sample.root / JOB).read_text()))
    sample.done("rewind daily_orders --to 0", "run daily_orders --accept-changes")
    sample.write("data/orders/later.csv", LATER)
    sample.done("land orders")
    told(sample.why("daily_orders ann"), "result-waits-for-clock", reason=containing("`rewindow run daily_orders`"))
    assert not any("`rewindow run" in reason for reason in sample.why("daily_orders bob"))
