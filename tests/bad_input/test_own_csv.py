"""What a user's own CSV has that the sample has not: empty keys, empty arrivals, wrong columns. None of it needs Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bad_input.own_csv import HEAD, row, settings
from tests.bad_input.scene import Say


def test_records_without_a_key_are_named_when_they_are_landed_and_when_a_job_skips_them(
    say: Say, shop: Path, orders: Path
) -> None:
    orders.write_text(HEAD + row(1) + "".join(row(number, "") for number in range(2, 7)))
    code, text = say("land", "orders")
    assert code == 0
    assert (
        "warning: feed orders: 5 records have no key in the log orders, because customer is null (partition 0, offsets 0, 1, "
        "2, ...). Jobs skip them where they group, aggregate or inner-join by key\n"
    ) in text
    code, text = say("run", "daily_orders")
    assert code == 0
    assert "  skipped: 5 null-key\n" in text
    assert (
        "  To see such records after later runs: `dropped: quarantine` in conf/jobs/daily_orders.yaml, and "
        "`rewindow head rewindow.quarantine --of daily_orders`.\n"
    ) in text
    with (shop / "conf/jobs/daily_orders.yaml").open("a") as file:
        file.write("dropped: quarantine\n")
    code, text = say("backfill", "daily_orders", "--from", "1", "--branch", "fix")
    assert code == 0
    assert "  skipped: 5 null-key\n  See them with `rewindow head rewindow.quarantine --of daily_orders`.\n" in text
    code, text = say("head", "rewindow.quarantine")
    assert text.count("null-key") == 5


def test_times_before_1970_are_named_with_their_lines(say: Say, shop: Path, orders: Path) -> None:
    orders.write_text(HEAD + row(1) + row(2, at="1969-12-31T00:00:00Z") + row(3, at="1960-12-31T00:00:00Z"))
    code, text = say("land", "orders")
    assert code == 65
    assert (
        "log orders: 2 rows have no valid time in ordered_at: "
        "first_days.csv, line 3: the timestamp '1969-12-31T00:00:00Z' is before 1970; "
        "first_days.csv, line 4: the timestamp '1960-12-31T00:00:00Z' is before 1970. Nothing was landed. Fix the source"
        in text
    )


def test_a_key_in_another_case_is_proposed(say: Say, shop: Path) -> None:
    assert say("land", "orders")[0] == 0
    assert say("run", "daily_orders")[0] == 0
    code, text = say("why", "daily_orders", "Ann ", "--missing")
    assert code == 0, text
    assert "- shop.daily_orders has rows of the key 'ann': ask for that one if it was meant." in text
    _, text = say("why", "daily_orders", "nobody", "--missing")
    assert "has rows of the key" not in text


def test_one_record_without_a_key_is_one(say: Say, orders: Path) -> None:
    orders.write_text(HEAD + row(1) + row(2, ""))
    _, text = say("land", "orders")
    assert (
        "1 record has no key in the log orders, because customer is null (partition 0, offset 0). Jobs skip it" in text
    )


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (1, "1 row has no arrival time, so it was quarantined.\n"),
        (2, "2 rows have no arrival time, so they were quarantined.\n"),
    ],
)
def test_a_row_without_an_arrival_is_not_a_late_one(
    say: Say, shop: Path, orders: Path, rows: int, sentence: str
) -> None:
    settings(shop, "key: customer", "key: customer\n    invalid_timestamp: skip")
    orders.write_text(HEAD + row(1) + "".join(row(2 + number, got="") for number in range(rows)))
    code, text = say("land", "orders")
    assert code == 0
    assert f"({rows} quarantined: `rewindow head rewindow.quarantine --of orders`)\n{sentence}" in text
    assert "had been landed" not in text
    assert json.loads(say("status", "--json")[1])["feeds"][0]["behind"] == 0


def test_late_rows_are_counted_in_good_english(say: Say, orders: Path) -> None:
    orders.write_text(HEAD + row(1))
    say("land", "orders")
    orders.with_name("late.csv").write_text(HEAD + row(2))
    _, text = say("land", "orders")
    assert "1 row became visible after its interval of arrival had been landed; it is part of this landing.\n" in text


def test_old_data_landed_file_by_file_have_no_late_rows_but_stragglers_with_until(say: Say, orders: Path) -> None:
    orders.write_text(HEAD + row(1))
    assert say("land", "orders", "--until", "2026-01-06")[0] == 0
    orders.with_name("straggler.csv").write_text(HEAD + row(2))
    code, text = say("land", "orders", "--until", "2026-01-06")
    said = "the intervals through 2026-01-06 00:00 UTC are landed; 1 new file waits for a later landing"
    assert (code, text) == (0, f"Feed orders: {said}.\n")
    orders.with_name("next_day.csv").write_text(HEAD + row(3, got="2026-01-06T10:00:00Z"))
    code, text = say("land", "orders", "--until", "2026-01-07")
    assert "landing 2, 2 records" in text
    assert "1 row became visible after its interval of arrival had been landed" in text, "the straggler alone"


def test_rows_that_arrive_in_the_future_are_shown_by_ls_status_and_why(say: Say, orders: Path) -> None:
    orders.write_text(HEAD + row(1) + row(2, got="2031-01-01T00:00:10Z"))
    assert say("land", "orders")[0] == 0
    waits = "rows of landed files are waiting: the day 2031-01-01 is complete at 2031-01-02 00:00 UTC"
    found = next(one for one in json.loads(say("ls", "--json")[1])["feeds"] if one["feed"] == "orders")
    assert found["detail"] == waits
    code, text = say("status")
    assert code == 0
    assert (
        "note: feed orders: the landed file first_days.csv of the log orders has rows that arrive in the future" in text
    )
    assert "at 2031-01-01 00:00:10Z. They wait until then." in text
    assert say("run", "daily_orders")[0] == 0
    code, text = say("why", "daily_orders", "zoe", "--missing")
    assert (code, f"Its records may be among those that arrive later: {waits}" in text) == (0, True), text


def test_rows_without_a_valid_time_are_counted_and_the_first_are_named_with_file_and_line(
    say: Say, shop: Path, orders: Path
) -> None:
    orders.write_text(HEAD + row(1) + row(2, at="") + row(3, got="") + row(4, at="") + row(5, at="") + row(6, at=""))
    code, text = say("land", "orders")
    assert code == 65
    assert (
        "log orders: 4 rows have no valid time in ordered_at: first_days.csv, line 3: no timestamp; first_days.csv, line 5: no "
        "timestamp; first_days.csv, line 6: no timestamp; .... 1 row has no valid time in received_at: first_days.csv, line 4: "
        "it has no arrived_at. Nothing was landed. Fix the source, or set `invalid_timestamp: skip` (quarantines the record) or "
        "`partition_time` for this log"
    ) in text
    assert text.count("Fix the source") == 1
    assert "in another form" not in text, "the file has no time there"
    assert say("land", "orders") == (code, text)


def test_the_bad_rows_of_all_logs_are_reported_together(say: Say, shop: Path, orders: Path) -> None:
    feed = shop / "conf/feeds/orders.yaml"
    log = feed.read_text().partition("  orders:\n")[2]
    feed.write_text(feed.read_text() + "  refunds:\n" + log.replace("data/orders", "data/refunds"))
    (shop / "data/refunds").mkdir()
    for name in ("orders", "refunds"):
        (shop / f"data/{name}/{orders.name}").write_text(HEAD + row(1, name) + row(2, at=""))
    code, text = say("land", "orders")
    assert code == 65
    assert "feed orders has 2 problems:\n- log orders: 1 row has no" in text
    assert "\n- log refunds: 1 row has no valid time in ordered_at: first_days.csv, line 3" in text


def test_a_similar_column_is_proposed_and_a_header_of_one_column_asks_for_its_separator(
    say: Say, shop: Path, orders: Path
) -> None:
    settings(shop, "key: customer", "key: Custmer")
    code, text = say("land", "orders")
    assert code == 78
    assert (
        "has no column 'Custmer'. It has order_id, customer, amount, ordered_at, received_at. Did you mean 'customer'?"
        in text
    )
    settings(shop, "key: Custmer", "key: customer")
    orders.write_text(orders.read_text().replace(",", ";"))
    code, text = say("land", "orders")
    assert code == 78
    assert 'That is one column: if ";" separates them, add `options: {delimiter: ";"}`' in text


def test_all_columns_that_no_file_has_are_named_at_once_without_spark(
    say: Say, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_spark(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("rewindow.app.open_project.open_session", no_spark)
    settings(shop, "key: customer", "key: kunde")
    settings(shop, "[order_id, amount]", "[order_id, betrag]")
    settings(shop, "path: data/orders}", 'path: data/orders, options: {dateFormat: "dd.MM.yyyy"}}')
    feed = shop / "conf/feeds/orders.yaml"
    log = feed.read_text().partition("  orders:\n")[2].replace("kunde", "customer").replace("betrag", "amount")
    feed.write_text(feed.read_text() + "  refunds:\n" + log.replace("received_at ", "came "))
    code, text = say("land", "orders")
    assert code == 78
    assert (
        "feed orders has 2 problems:\n"
        "- log orders: data/orders has no columns 'kunde' (`key`), 'betrag' (`value`). It has order_id, customer, amount, "
        "ordered_at, received_at\n"
        "- log refunds, `arrived_at`: data/orders has no column 'came'. It has order_id, customer, amount, ordered_at, "
        "received_at\n"
    ) in text
