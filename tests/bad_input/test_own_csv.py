"""What a user's own CSV has that the sample has not: empty keys, empty arrivals, wrong columns. None of it needs Spark."""

from __future__ import annotations

import re

from tests.bad_input.own_csv import FEED, HEAD, ORDERS, own, row, rows
from tests.bad_input.scene import Bench
from tests.refusals import containing, told


def test_records_without_a_key_are_named_when_they_are_landed_and_when_a_job_skips_them(new_shop: Bench) -> None:
    rows(new_shop, row(1), *(row(number, "") for number in range(2, 7)))
    warnings = new_shop.land("orders").warnings
    where = "partition 0, offsets 0, 1, 2, ..."
    told(warnings, "records-without-key", what="5 records have", column="customer", where=where)
    assert new_shop.json("run daily_orders")["dropped"] == {"skipped": {"null-key": 5}}
    job = "conf/jobs/daily_orders.yaml"
    new_shop.write(job, f"{(new_shop.root / job).read_text()}dropped: quarantine\n")
    new_shop.done("backfill daily_orders --from 1 --branch fix")
    (table,) = new_shop.json("head rewindow.quarantine --of daily_orders")["tables"]
    assert [one["reason"] for one in table["rows"]] == ["null-key"] * 5


def test_one_record_without_a_key_is_one(new_shop: Bench) -> None:
    rows(new_shop, row(1), row(2, ""))
    told(new_shop.land("orders").warnings, "records-without-key", what="1 record has", them="it")


def test_a_key_in_another_case_is_proposed(sample: Bench) -> None:
    told(sample.why("daily_orders Ann"), "similar-key-exists", key="ann")
    assert "similar-key-exists" not in [reason.code for reason in sample.why("daily_orders nobody")]


def test_a_row_without_an_arrival_is_not_a_late_one(new_shop: Bench) -> None:
    new_shop.edit(FEED, "key: customer", "key: customer\n    invalid_timestamp: skip")
    rows(new_shop, row(1), row(2, got=""), row(3, got=""))
    report = new_shop.land("orders")
    assert (report.quarantined, report.unarrived, report.behind) == (2, 2, 0)


def test_late_rows_are_those_of_landed_intervals(new_shop: Bench) -> None:
    rows(new_shop, row(1))
    new_shop.done("land orders --until 2026-01-06")
    own(new_shop, 2)
    report = new_shop.json("land orders --until 2026-01-06")
    assert (report["landings"], report["waiting_code"]) == ([], "intervals-landed")
    own(new_shop, 3, got="2026-01-06T10:00:00Z")
    report = new_shop.json("land orders --until 2026-01-07")
    assert (report["rows"], report["behind"]) == (2, 1), "the straggler alone"


def test_rows_that_arrive_in_the_future_are_shown_by_ls_status_and_why(new_shop: Bench) -> None:
    rows(new_shop, row(1), row(2, got="2031-01-01T00:00:10Z"))
    new_shop.done("land orders")
    (feed,) = new_shop.said("ls")["feeds"]
    assert feed["detail_codes"] == ["interval-not-complete"]
    findings = [finding.message for finding in new_shop.findings()]
    told(findings, "rows-of-the-future", file="first_days.csv", topic="orders", time="2031-01-01 00:00:10Z")
    new_shop.done("run daily_orders")
    told(new_shop.why("daily_orders zoe"), "key-may-arrive-later", waiting=feed["detail"])


def test_rows_without_a_valid_time_are_counted_and_the_first_are_named_with_file_and_line(new_shop: Bench) -> None:
    rows(
        new_shop, row(1), row(2, at=""), row(3, got=""), row(4, at=""), row(5, at=""), row(6, at="1969-12-31T00:00:00Z")
    )
    for _ in range(2):
        refusal = new_shop.refuses("land orders", "rows-without-valid-time", topic="orders")
        rows_and_place = r"(\d) rows? ha\w+ no valid time in (\w+): (\S+, line \d)"
        assert re.findall(rows_and_place, str(refusal.facts["rows"])) == [
            ("4", "ordered_at", "first_days.csv, line 3"),
            ("1", "received_at", "first_days.csv, line 4"),
        ]
    rows(new_shop, row(1), row(2, at="1969-12-31T00:00:00Z"))
    new_shop.refuses("land orders", "rows-without-valid-time", rows=containing("line 3: the timestamp '1969-12-31"))


def test_the_bad_rows_of_all_logs_are_reported_together(new_shop: Bench) -> None:
    text = (new_shop.root / FEED).read_text()
    log = text.partition("  orders:\n")[2]
    new_shop.write(FEED, text + "  refunds:\n" + log.replace("data/orders", "data/refunds"))
    for name in ("orders", "refunds"):
        new_shop.write(ORDERS.replace("orders", name), HEAD + row(1, name) + row(2, at=""))
    refusal = new_shop.run("land", "orders").failure
    assert refusal is not None
    assert refusal.exit_code == 65
    assert all(f"\n- log {name}: 1 row has no" in refusal.message for name in ("orders", "refunds"))


def test_a_similar_column_is_proposed_and_a_header_of_one_column_asks_for_its_separator(new_shop: Bench) -> None:
    new_shop.edit(FEED, "key: customer", "key: Custmer")
    new_shop.refuses("land orders", "column-unknown", option="key", column="Custmer", known=containing("'customer'"))
    new_shop.edit(FEED, "key: Custmer", "key: customer")
    new_shop.write(ORDERS, (new_shop.root / ORDERS).read_text().replace(",", ";"))
    hint = containing('`options: {delimiter: ";"}`')
    new_shop.refuses("land orders", "columns-unknown", source="data/orders", hint=hint)


def test_all_columns_that_no_file_has_are_named_at_once_without_spark(new_shop: Bench) -> None:
    text = (new_shop.root / FEED).read_text()
    log = text.partition("  orders:\n")[2].replace("received_at ", "came ")
    wrong = text.replace("key: customer", "key: kunde").replace("[order_id, amount]", "[order_id, betrag]")
    new_shop.write(FEED, wrong + "  refunds:\n" + log)
    answer = new_shop.run("land", "orders")
    assert answer.code == 78
    assert all(name in answer.err for name in ("'kunde'", "'betrag'", "'came'"))
