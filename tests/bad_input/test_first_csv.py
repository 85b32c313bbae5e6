"""What a newcomer's own CSV file and job run into. None of it needs Spark."""

from __future__ import annotations

import re

import pytest

from tests.bad_input.own_csv import HEAD, ORDERS
from tests.bad_input.scene import Bench
from tests.refusals import containing

FEED, JOB, CODE = "conf/feeds/orders.yaml", "conf/jobs/daily_orders.yaml", "jobs/daily_orders.py"
WHERE = '        .where("amount > 0")\n'
SCHEMA = "order_id BIGINT, customer STRING, amount {amount}, ordered_at TIMESTAMP, received_at TIMESTAMP"


def replace_all(bench: Bench, path: str, old: str, new: str) -> None:
    text = (bench.root / path).read_text(encoding="utf-8")
    assert old in text, (path, old)
    bench.write(path, text.replace(old, new))


@pytest.mark.parametrize("column", [-1, -2])
def test_times_in_another_form_name_the_column_and_the_option_that_reads_them(new_shop: Bench, column: int) -> None:
    new_shop.edit(FEED, "landing: {every: 1d}", "landing: {}")
    head, *rows = [line.split(",") for line in (new_shop.root / ORDERS).read_text().splitlines()]
    for row in rows:
        row[column] = f"Mon {row[column][11:16]}"
    new_shop.write(ORDERS, "".join(",".join(row) + "\n" for row in (head, *rows)))
    refusal = new_shop.run("land", "orders").failure
    assert refusal is not None
    assert (refusal.exit_code, head[column] in refusal.message) == (65, True)
    assert "options: {time_format: " in refusal.message


def test_a_sum_of_texts_says_how_to_land_them_as_numbers(new_shop: Bench) -> None:
    replace_all(new_shop, ORDERS, ",12.5,", ",EUR 12.5,")
    new_shop.edit(CODE, WHERE, "")
    new_shop.done("land orders")
    new_shop.refuses("run daily_orders", "landed-field-not-number", field="amount", type="text")
    replace_all(new_shop, ORDERS, ",EUR 12.5,", ",12.5,")
    new_shop.edit(FEED, "path: data/orders}", f'path: data/orders, schema: "{SCHEMA.format(amount="DOUBLE")}"}}')
    fix = containing("`columns: {amount_2: amount}`")
    new_shop.refuses("land orders --new-generation", "log-column-type-changed", fix=fix)
    new_shop.edit(
        FEED, "    value: [order_id, amount]", "    columns: {amount_2: amount}\n    value: [order_id, amount_2]"
    )
    new_shop.edit(CODE, 'Sum("amount")', 'Sum("amount_2")')
    new_shop.done("land orders --new-generation", "run daily_orders")


def test_keys_that_differ_are_shown_with_times_not_with_milliseconds(sample: Bench) -> None:
    sample.edit(CODE, WHERE, "")
    sample.edit(CODE, 'grace="6h"', 'grace="9h"')
    sample.done("backfill daily_orders --from 1 --branch fix")
    answer = sample.run(*["diff", "daily_orders", "main", "fix"])
    assert (answer.code, "where-1: is removed" in answer.out) == (1, True)
    assert "window_start=2026-01-06 00:00:00Z" in answer.out
    assert re.search(r"=1\d{12}", answer.out) is None


def test_decimals_that_differ_are_texts_in_json(new_shop: Bench) -> None:
    schema = SCHEMA.format(amount="DECIMAL(12,2)")
    new_shop.edit(FEED, "path: data/orders}", f'path: data/orders, schema: "{schema}"}}')
    new_shop.edit(CODE, WHERE, '        .where("order_id != 3")\n')
    new_shop.done("land orders", "run daily_orders")
    new_shop.edit(CODE, '        .where("order_id != 3")\n', "")
    new_shop.done("backfill daily_orders --from 1 --branch fix")
    sample = new_shop.json("diff daily_orders main fix")["daily-orders"]["samples"][0]
    assert any(isinstance(row["amount"], str) for rows in sample[1:] for row in rows), sample


def test_a_run_that_an_earlier_failure_left_says_what_it_quarantined(new_shop: Bench) -> None:
    new_shop.edit(CODE, WHERE, "        .filter(even, name='even')\n")
    new_shop.edit(
        CODE,
        "def build_topology",
        "def even(_key, row) -> bool:\n    return 100 % row.amount > 0\n\n\ndef build_topology",
    )
    replace_all(new_shop, ORDERS, ",12.5,", ",0.0,")
    new_shop.done("land orders")
    new_shop.refuses("run daily_orders", "node-failed", node="even")
    text = (new_shop.root / JOB).read_text()
    new_shop.write(JOB, f"{text}on_error: {{even: quarantine}}\n")
    assert "quarantined: 1 ZeroDivisionError" in new_shop.done("run daily_orders").out


def test_a_csv_file_that_may_be_half_written_is_told_unless_its_producer_never_ends_the_last_line(
    new_shop: Bench,
) -> None:
    times = "2026-01-09T08:15:00Z,2026-01-09T08:16:00Z"
    new_shop.edit(FEED, "landing: {every: 1d}", "landing: {}")
    new_shop.done("land orders")
    for number, (end, codes) in enumerate([("\r\n", 0), *[("", 1)] * 3, ("", 0)]):
        new_shop.write(f"data/orders/n{number}.csv", f"{HEAD}1{number},ann,2.5,{times}{end}")
        assert new_shop.json("land orders")["warning_codes"] == ["files-end-within-line"] * codes, number
    assert new_shop.json("land orders --new-generation")["warning_codes"] == ["files-end-within-line"]


def test_numbers_are_numbers_before_the_first_landing_too(new_shop: Bench) -> None:
    new_shop.edit(CODE, WHERE, "")
    new_shop.done("explain daily_orders", "check daily_orders")
