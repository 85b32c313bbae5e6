"""A new file with a header and no rows makes no feed due: `land` lands nothing of it, however often it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.scene import TARGET, Bench
from tests.ingest.local_engine import HOUR, T0

FEED = """\
feed: shop
partitions: 1
logs:
  orders: {source: {path: shop, format: csv}, key: user, timestamp: t, units: {t: ms}, arrived_at: t}
"""


@pytest.mark.parametrize("landing", ["", "landing: {every: 1h}\n"], ids=["files", "intervals"])
def test_a_file_with_only_a_header_is_not_due_until_it_has_rows(in_process: None, tmp_path: Path, landing: str) -> None:
    bench = Bench(tmp_path)
    bench.write("conf/targets/local.yaml", TARGET)
    bench.write("conf/feeds/shop.yaml", FEED + landing)
    bench.write("shop/a.csv", f"user,t\nann,{T0}\n")
    bench.done("land shop")

    def listed() -> tuple[str, list[str]]:
        (feed,) = bench.json("ls")["feeds"]
        return feed["status"], feed["detail_codes"]

    bench.write("shop/b.csv", "user,t\n")
    assert listed() == ("fresh", ["file-without-rows"])
    assert bench.json("land shop")["landings"] == []
    bench.write("shop/c.csv", f"user,t\nbob,{T0 + HOUR}\n")
    assert listed() == ("due", ["sources-have-new", "file-without-rows"])
    bench.write("shop/b.csv", f"user,t\nbob,{T0 + HOUR}\n")
    bench.write("shop/c.csv", f"user,t\ncyd,{T0 + HOUR}\n")
    assert listed() == ("due", ["sources-have-new"])
    bench.done("land shop")
    assert listed() == ("fresh", [])
