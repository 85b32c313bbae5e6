"""A provider adds, renames or drops columns: what `land` and `status` say, and how feed and jobs go on. Without Spark."""

from __future__ import annotations

import json

from tests.bad_input.own_csv import FEED, HEAD, ORDERS
from tests.bad_input.scene import Bench
from tests.refusals import containing, told

NEW = HEAD.replace("customer", "coupon,customer") + "11,SPRING,ann,2.5,2026-01-09T08:15:00Z,2026-01-09T08:16:00Z\n"
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


ROW = "9,ann,12.5,2026-01-09T08:15:00Z,2026-01-09T08:16:00Z\n"


def test_a_new_file_without_a_landed_column_is_broken_before_it_is_landed(sample: Bench) -> None:
    sample.write("data/orders/new.csv", HEAD.replace("amount", "total") + ROW)
    reason = containing("new.csv has no amount, which is landed")
    told((one.message for one in sample.findings()), "next-call-refused", what="landing", exit_code=66, reason=reason)
    assert sample.run("land", "orders").code == 66
    sample.done("ls")


def test_new_columns_that_the_feed_does_not_use_are_well(sample: Bench) -> None:
    sample.write("data/orders/new.csv", HEAD.replace("amount", "coupon,amount") + ROW.replace("ann", "ann,X"))
    (feed,) = sample.json("status orders")["feeds"]
    assert (feed["status"], feed["detail"], feed["exit_code"]) == ("due", "1 new file", None)


def test_a_first_landing_without_a_configured_column_is_broken(new_shop: Bench) -> None:
    new_shop.write(ORDERS, (new_shop.root / ORDERS).read_text().replace("customer", "client"))
    told((one.message for one in new_shop.findings("orders")), "next-call-refused", what="landing", exit_code=78)


def test_the_fields_of_large_json_files_are_said_to_be_unknown(new_shop: Bench) -> None:
    new_shop.edit("conf/feeds/orders.yaml", "format: csv, path", "format: json, path")
    (new_shop.root / ORDERS).unlink()
    order = {"order_id": 1, "customer": "ann", "amount": 1.5, "ordered_at": "2026-01-05T08:15:00Z"}
    line = json.dumps(order | {"received_at": "2026-01-05T08:16:00Z"}) + "\n"
    new_shop.write("data/orders/a.json", line)
    new_shop.done("land orders")
    new_shop.write("data/orders/b.json", line.replace("amount", "total"))
    assert [finding.about for finding in new_shop.findings("orders")] == ["refused"]
    new_shop.write("data/orders/b.json", line * 20_000)
    assert "compares the fields" in new_shop.json("status orders")["feeds"][0]["detail"]
