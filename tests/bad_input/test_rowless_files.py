"""A new file with a header and no rows makes no feed due: `land` lands nothing of it, however often it is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input.scene import Bench, copy_of
from tests.ingest.local_engine import HOUR, T0

FEED = """\
feed: shop
partitions: 1
logs:
  orders: {source: {path: shop, format: csv}, key: user, timestamp: t, units: {t: ms}, arrived_at: t}
"""


@pytest.fixture(params=["", "landing: {every: 1h}\n"], ids=["files", "intervals"])
def shop(template: Bench, tmp_path: Path, request: pytest.FixtureRequest) -> Bench:
    """Return a project with a feed of CSV files, of which one is landed."""
    bench = copy_of(template, tmp_path / "project")
    bench.write("conf/feeds/shop.yaml", FEED + request.param)
    bench.write("shop/a.csv", f"user,t\nann,{T0}\n")
    assert bench.run("land", "shop").code == 0
    return bench


def listed(bench: Bench) -> tuple[str, Any]:
    (feed,) = [one for one in json.loads(bench.run("ls", "--json").out)["feeds"] if one["feed"] == "shop"]
    return feed["status"], feed["detail"]


def test_a_file_with_only_a_header_is_not_due_until_it_has_rows(shop: Bench) -> None:
    assert listed(shop) == ("fresh", None)
    shop.write("shop/b.csv", "user,t\n")
    assert listed(shop) == ("fresh", "b.csv has no rows")
    assert "nothing new to land" in shop.run("land", "shop").out
    assert listed(shop) == ("fresh", "b.csv has no rows")
    shop.write("shop/c.csv", f"user,t\nbob,{T0 + HOUR}\n")
    assert listed(shop) == ("due", "1 new file; b.csv has no rows")
    (shop.root / "shop/c.csv").unlink()
    shop.write("shop/b.csv", f"user,t\nbob,{T0 + HOUR}\n")
    assert listed(shop) == ("due", "1 new file")
    assert shop.run("land", "shop").code == 0
    assert listed(shop) == ("fresh", None)
