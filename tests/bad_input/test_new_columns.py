"""A provider adds a column to its CSV files. The feed goes on, and so do its jobs. None of it needs Spark."""

from __future__ import annotations

from tests.bad_input.own_csv import FEED
from tests.bad_input.scene import Bench
from tests.refusals import containing

HEAD = "order_id,coupon,customer,amount,ordered_at,received_at\n"
NEW = HEAD + "11,SPRING,ann,2.5,2026-01-09T08:15:00Z,2026-01-09T08:16:00Z\n"
FILE = "data/orders/new.csv"


def test_a_new_column_is_landed_from_here_on_and_a_job_can_use_it(sample: Bench) -> None:
    sample.write(FILE, NEW)
    sample.edit(FEED, "value: [order_id, amount]", "value: [order_id, amount, coupon]")
    sample.refuses("land orders", "feed-definition-changed", keep=containing("`--keep 3`"))
    refusal = sample.run(*["land", "orders", "--new-generation", "--keep", "3"])
    assert (refusal.code, "`optional: [coupon]`" in refusal.err) == (66, True)
    sample.edit(FEED, "key: customer", "key: customer\n    optional: [coupon]")
    assert sample.json("land orders --new-generation --keep 3")["rows"] == 1
    assert sample.json("run daily_orders")["epochs"] == [4, 4]
    sample.edit("jobs/daily_orders.py", "amount > 0", "coupon is null")
    sample.done("run daily_orders --accept-changes", "backfill daily_orders --from 1 --branch coupons")


def test_a_renamed_column_of_a_declared_schema_is_told_in_a_new_generation_what_it_is_told_in_a_landing(
    new_shop: Bench,
) -> None:
    schema = "order_id BIGINT, customer STRING, amount DOUBLE, ordered_at TIMESTAMP, received_at TIMESTAMP"
    new_shop.edit(FEED, "path: data/orders}", f'path: data/orders, schema: "{schema}"}}')
    new_shop.done("land orders")
    new_shop.write(FILE, NEW.replace("amount", "amountEUR").replace("coupon", "x"))
    for more in ("", " --new-generation"):
        answer = new_shop.run(*f"land orders{more}".split())
        assert (answer.code, "was amount renamed?" in answer.err) == (66, True), answer
    new_shop.edit(FEED, "key: customer", "key: customer\n    optional: [amount]\n    ignore: [amountEUR, x]")
    assert new_shop.json("land orders")["rows"] == 1
