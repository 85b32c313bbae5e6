"""What a newcomer's own CSV file and job run into, and what the messages say then. None of it needs Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.bad_input.scene import Say


def edited(shop: Path, file: str, *changes: tuple[str, str]) -> None:
    path = shop / file
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


@pytest.mark.spark
@pytest.mark.parametrize(("column", "name"), [(-1, "received_at"), (-2, "ordered_at")])
def test_times_in_another_form_name_the_column_and_the_option_that_reads_them(
    say: Say, shop: Path, column: int, name: str
) -> None:
    edited(shop, "conf/feeds/orders.yaml", ("landing: {every: 1d}", "landing: {}"))
    file = shop / "data/orders/first_days.csv"
    head, *rows = [line.split(",") for line in file.read_text().splitlines()]
    for row in rows:
        row[column] = f"Mon {row[column][11:16]}"
    file.write_text("".join(",".join(row) + "\n" for row in (head, *rows)))
    code, text = say("land", "orders")
    assert code == 65
    assert f"If {name} has times in another form than 2026-01-05T10:00:00Z" in text
    assert 'options: {time_format: "dd.MM.yyyy HH:mm"}' in text


def test_a_header_with_the_same_name_twice_says_which_one(say: Say, shop: Path) -> None:
    edited(shop, "data/orders/first_days.csv", ("order_id,customer", "Customer,customer"))
    code, text = say("land", "orders")
    assert code == 78
    assert "It has Customer0, customer1, amount" in text
    assert "The header has 'customer' more than once (case does not count), so all are numbered" in text


def test_a_sum_of_texts_says_how_to_land_them_as_numbers(say: Say, shop: Path) -> None:
    edited(shop, "data/orders/first_days.csv", (",12.5,", ",EUR 12.5,"))
    edited(shop, "jobs/daily_orders.py", ('        .where("amount > 0")\n', ""))
    assert say("land", "orders")[0] == 0
    code, text = say("run", "daily_orders")
    assert code == 78
    assert (
        "convert it with map_values, or land it as a number: declare that in the source's `schema:`, give it a new"
        in text
    )
    columns = "order_id BIGINT, customer STRING, amount DOUBLE, ordered_at TIMESTAMP, received_at TIMESTAMP"
    edited(shop, "data/orders/first_days.csv", (",EUR 12.5,", ",12.5,"))
    edited(shop, "conf/feeds/orders.yaml", ("path: data/orders}", f'path: data/orders, schema: "{columns}"}}'))
    code, text = say("land", "orders", "--new-generation")
    assert code == 76
    assert (
        "give the column another name (`columns: {amount_2: amount}`), because a log keeps the type of each name"
        in text
    )
    edited(
        shop,
        "conf/feeds/orders.yaml",
        ("    value: [order_id, amount]", "    columns: {amount_2: amount}\n    value: [order_id, amount_2]"),
    )
    edited(shop, "jobs/daily_orders.py", ('Sum("amount")', 'Sum("amount_2")'))
    code, text = say("land", "orders", "--new-generation")
    assert code == 0, text
    code, text = say("run", "daily_orders")
    assert code == 0, text


def test_keys_that_differ_are_shown_with_times_not_with_milliseconds(say: Say, shop: Path) -> None:
    say("land", "orders")
    say("run", "daily_orders")
    edited(shop, "jobs/daily_orders.py", ('        .where("amount > 0")\n', ""), ('grace="6h"', 'grace="9h"'))
    say("backfill", "daily_orders", "--from", "1", "--branch", "fix")
    code, text = say("diff", "daily_orders", "main", "fix")
    assert code == 1
    assert "main and fix ran different code: " in text
    assert "where-1: is removed" in text
    assert "of store orders-per-day changed: 1d6h -> 1d9h" in text
    assert "window_start=2026-01-06 00:00:00Z" in text
    assert "_timestamp=2026-01-06 09:" in text
    assert re.search(r"=1\d{12}", text) is None


def test_decimals_that_differ_are_texts_in_json(say: Say, shop: Path) -> None:
    columns = "order_id BIGINT, customer STRING, amount DECIMAL(12,2), ordered_at TIMESTAMP, received_at TIMESTAMP"
    edited(shop, "conf/feeds/orders.yaml", ("path: data/orders}", f'path: data/orders, schema: "{columns}"}}'))
    edited(shop, "jobs/daily_orders.py", ('        .where("amount > 0")\n', '        .where("order_id != 3")\n'))
    assert say("land", "orders")[0] == 0
    assert say("run", "daily_orders")[0] == 0
    edited(shop, "jobs/daily_orders.py", ('        .where("order_id != 3")\n', ""))
    assert say("backfill", "daily_orders", "--from", "1", "--branch", "fix")[0] == 0
    code, text = say("diff", "daily_orders", "main", "fix", "--json")
    assert code == 1, text
    sample = json.loads(text)["daily-orders"]["samples"][0]
    assert any(isinstance(row["amount"], str) for rows in sample[1:] for row in rows), sample


def test_a_final_run_says_that_the_branch_is_sealed(say: Say, shop: Path) -> None:
    assert say("land", "orders")[0] == 0
    code, text = say("run", "daily_orders", "--final")
    assert code == 0
    assert (
        "  Every window is closed, and branch main is sealed: it takes no more runs. `rewindow rewind` to the run before"
        in text
    )
    head = "order_id,customer,amount,ordered_at,received_at\n"
    row = "99,ann,12.5,2026-02-07T08:15:00Z,2026-02-07T08:16:00Z\n"
    (shop / "data" / "orders" / "more.csv").write_text(head + row)
    assert say("land", "orders")[0] == 0
    code, text = say("run", "daily_orders")
    assert code == 76, text
    assert "Take that run back with `rewindow rewind daily_orders --to 0`, or replay on a new branch" in text
    assert say("rewind", "daily_orders", "--to", "0")[0] == 0
    assert say("run", "daily_orders")[0] == 0


def test_a_run_that_an_earlier_failure_left_says_what_it_quarantined(say: Say, shop: Path) -> None:
    edited(
        shop,
        "jobs/daily_orders.py",
        ('        .where("amount > 0")\n', "        .filter(even, name='even')\n"),
        ("def build_topology", "def even(_key, row) -> bool:\n    return 100 % row.amount > 0\n\n\ndef build_topology"),
    )
    edited(shop, "data/orders/first_days.csv", (",12.5,", ",0.0,"))
    say("land", "orders")
    code, text = say("run", "daily_orders")
    assert code == 65, text
    with (shop / "conf/jobs/daily_orders.yaml").open("a") as file:
        file.write("on_error: {even: quarantine}\n")
    code, text = say("run", "daily_orders")
    assert code == 0
    assert "It completes the plan of an attempt that did not finish." in text
    assert "  quarantined: 1 ZeroDivisionError\n" in text
    assert "Nothing more to run" in text


def test_a_csv_file_that_may_be_half_written_is_told_unless_its_producer_never_ends_the_last_line(
    say: Say, shop: Path
) -> None:
    head, day = "order_id,customer,amount,ordered_at,received_at\n", "2026-01-09T08:15:00Z,2026-01-09T08:16:00Z"

    def warns(name: str, text: str) -> bool:
        (shop / f"data/orders/{name}").write_text(head + text)
        code, said = say("land", "orders")
        assert (code, "landing" in said) == (0, True), said
        return f"warning: feed orders: {name} of the log orders does not end with the end of a line. If it was" in said

    edited(shop, "conf/feeds/orders.yaml", ("landing: {every: 1d}", "landing: {}"))
    assert say("land", "orders")[0] == 0
    assert not warns("n1.csv", f"11,ann,2.5,{day}\n")
    assert not warns("n2.csv", f"12,ann,2.5,{day}\r\n")
    assert warns("n3.csv", f"13,ann,2.5,{day}")
    assert warns("n4.csv", f"14,ann,2.5,{day}")
    assert warns("n5.csv", f"15,ann,2.5,{day}")
    assert not warns("n6.csv", f"16,ann,2.5,{day}")
    _, said = say("land", "orders", "--new-generation")
    assert "n3.csv of the log orders and 3 more files do not end with the end of a line. If they were still" in said


@pytest.mark.parametrize("command", ["explain", "run", "check"])
def test_numbers_are_numbers_before_the_first_landing_too(say: Say, shop: Path, command: str) -> None:
    edited(shop, "jobs/daily_orders.py", ('        .where("amount > 0")\n', ""))
    _, text = say(command, "daily_orders")
    assert "was landed as text" not in text
    assert say("land", "orders")[0] == 0
    assert say(command, "daily_orders")[0] == 0
