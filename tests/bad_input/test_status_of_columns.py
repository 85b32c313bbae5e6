"""`rewindow status` says that the next landing would be refused because of its columns. None of it needs Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bad_input.scene import Say

HEAD = "order_id,customer,amount,ordered_at,received_at\n"
ROW = "9,ann,12.5,2026-01-09T08:15:00Z,2026-01-09T08:16:00Z\n"


@pytest.fixture
def landed(say: Say, shop: Path) -> Path:
    assert say("land", "orders")[0] == 0
    assert say("run", "daily_orders")[0] == 0
    assert say("status")[0] == 0
    return shop


def test_a_new_file_without_a_landed_column_is_broken_before_it_is_landed(say: Say, landed: Path) -> None:
    (landed / "data/orders/new.csv").write_text(HEAD.replace("amount", "total") + ROW)
    code, text = say("status")
    refused = "log orders: new.csv has no amount, which is landed. It has total"
    assert (code, f"broken: feed orders: the next landing is refused (66): {refused}" in text) == (1, True), text
    assert "`optional: [amount]` and `ignore: [total]`" in text
    code, text = say("land", "orders")
    assert (code, refused in text) == (66, True)
    assert say("ls")[0] == 0


def test_new_columns_that_the_feed_does_not_use_are_well(say: Say, landed: Path) -> None:
    (landed / "data/orders/new.csv").write_text(HEAD.replace("amount", "coupon,amount") + ROW.replace("ann", "ann,X"))
    (feed,) = json.loads(say("status", "orders", "--json")[1])["feeds"]
    assert (feed["status"], feed["detail"], feed["exit_code"]) == ("due", "1 new file", None)


def test_a_first_landing_without_a_configured_column_is_broken(say: Say, shop: Path) -> None:
    (file,) = (shop / "data/orders").iterdir()
    file.write_text(file.read_text().replace("customer", "client"))
    code, text = say("status", "orders")
    assert code == 1
    assert "the next landing is refused (78): log orders, `key`: data/orders has no column 'customer'" in text
    assert say("land", "orders")[0] == 78


def test_the_fields_of_large_json_files_are_said_to_be_unknown(say: Say, shop: Path) -> None:
    feed = shop / "conf/feeds/orders.yaml"
    feed.write_text(
        feed.read_text().replace(
            "format: csv, path: data/orders",
            "format: json, path: data/orders",
        )
    )
    (file,) = (shop / "data/orders").iterdir()
    file.unlink()
    one = {"order_id": 1, "customer": "ann", "amount": 1.5, "ordered_at": "2026-01-05T08:15:00Z"}
    line = json.dumps(one | {"received_at": "2026-01-05T08:16:00Z"}) + "\n"
    (shop / "data/orders/a.json").write_text(line)
    assert say("land", "orders")[0] == 0
    (shop / "data/orders/b.json").write_text(line.replace("amount", "total"))
    assert say("status", "orders")[0] == 1
    (shop / "data/orders/b.json").write_text(line * 20_000)
    (feed,) = json.loads(say("status", "orders", "--json")[1])["feeds"]
    assert feed["detail"] == "1 new file; only `land` compares the fields of 1 json file"
