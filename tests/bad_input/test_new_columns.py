"""A provider adds a column to its CSV files. The feed goes on, and so do its jobs. None of it needs Spark."""

from __future__ import annotations

from pathlib import Path

from tests.bad_input.scene import Say

HEAD = "order_id,coupon,customer,amount,ordered_at,received_at\n"
NEW = HEAD + "11,SPRING,ann,2.5,2026-01-09T08:15:00Z,2026-01-09T08:16:00Z\n"


def edited(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_column_that_the_feed_does_not_use_changes_nothing(say: Say, shop: Path) -> None:
    assert say("land", "orders")[0] == 0
    (shop / "data/orders/new.csv").write_text(NEW)
    code, text = say("land", "orders")
    assert (code, "landing 4, 1 record" in text) == (0, True), text
    code, text = say("run", "daily_orders")
    assert code == 0
    _, text = say("head", "daily_orders")
    assert "2.5" not in text, "its window is still open"


def test_a_new_column_is_landed_from_here_on_and_a_job_can_use_it(say: Say, shop: Path) -> None:
    assert say("land", "orders")[0] == 0
    assert say("run", "daily_orders")[0] == 0
    (shop / "data/orders/new.csv").write_text(NEW)
    edited(shop / "conf/feeds/orders.yaml", "value: [order_id, amount]", "value: [order_id, amount, coupon]")
    code, text = say("land", "orders")
    assert code == 66
    assert "With `--keep 3`, what is landed stays as it is" in text
    code, text = say("land", "orders", "--new-generation", "--keep", "3")
    assert code == 66
    assert "first_days.csv has no coupon, which is landed" in text
    assert "`optional: [coupon]`" in text
    edited(shop / "conf/feeds/orders.yaml", "key: customer", "key: customer\n    optional: [coupon]")
    code, text = say("land", "orders", "--new-generation", "--keep", "3")
    assert (code, "landing 4, 1 record" in text) == (0, True), text
    code, text = say("run", "daily_orders")
    assert (code, "epochs 4 to 4, 1 of orders" in text) == (0, True), text
    edited(shop / "jobs/daily_orders.py", "amount > 0", "coupon is null")
    code, text = say("run", "daily_orders", "--accept-changes")
    assert code == 0, text
    code, text = say("backfill", "daily_orders", "--from", "1", "--branch", "coupons")
    assert (code, "1 to 4, 11 of orders" in text) == (0, True), text


def test_a_file_without_a_column_that_is_landed_is_refused_and_names_the_ways_on(say: Say, shop: Path) -> None:
    assert say("land", "orders")[0] == 0
    (shop / "data/orders/new.csv").write_text(NEW.replace("order_id", "id"))
    code, text = say("land", "orders")
    assert code == 66
    assert (
        "new.csv has no order_id, which is landed. It has id, which no landed file has: was order_id renamed?" in text
    )
    advice = (
        "Nothing was landed. Name it order_id in the file, or set `optional: [order_id]` and `ignore: [id, coupon]` to"
    )
    assert advice in text
    assert "--new-generation" not in text, "the other files have it, so that would be refused"
    code, text = say("land", "orders", "--new-generation")
    assert (code, "set `optional: [order_id]` and `ignore: [id]`" in text) == (66, False), text
    edited(
        shop / "conf/feeds/orders.yaml",
        "key: customer",
        "key: customer\n    optional: [order_id]\n    ignore: [id, coupon]",
    )
    code, text = say("land", "orders")
    assert (code, "landing 4, 1 record" in text) == (0, True), text


def test_a_renamed_column_of_a_declared_schema_is_told_in_a_new_generation_what_it_is_told_in_a_landing(
    say: Say, shop: Path
) -> None:
    feed = shop / "conf/feeds/orders.yaml"
    schema = "order_id BIGINT, customer STRING, amount DOUBLE, ordered_at TIMESTAMP, received_at TIMESTAMP"
    edited(feed, "path: data/orders}", f'path: data/orders, schema: "{schema}"}}')
    assert say("land", "orders")[0] == 0
    (shop / "data/orders/new.csv").write_text(NEW.replace("amount", "amountEUR").replace("coupon", "x"))
    for more in ((), ("--new-generation",)):
        code, text = say("land", "orders", *more)
        assert code == 66
        assert "was amount renamed? Nothing was landed. Name it amount in the file, or set `optional: [amount]`" in text
    edited(feed, "key: customer", "key: customer\n    optional: [amount]\n    ignore: [amountEUR, x]")
    code, text = say("land", "orders")
    assert (code, "landing 4, 1 record" in text) == (0, True), text
