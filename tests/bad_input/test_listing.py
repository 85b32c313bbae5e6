"""`rewindow ls`: the status of every feed, job and branch, whatever is wrong with another one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rewindow.errors import NotNowError
from tests.bad_input.chain import reads_totals
from tests.bad_input.scene import FEED, HOURLY, JOB, TARGET, Bench, hour
from tests.bad_input.statuses import status
from tests.ingest.local_engine import HOUR, T0


def listed(bench: Bench) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the feeds and the jobs by name."""
    found = bench.json("ls")
    return {one["feed"]: one for one in found["feeds"]}, {one["job"]: one for one in found["jobs"]}


def statuses(bench: Bench) -> tuple[str, str]:
    feeds, jobs = listed(bench)
    return feeds["activity"]["status"], jobs["counts"]["status"]


def test_what_waits_is_due_and_more_of_it_is_behind(bench: Bench) -> None:
    feeds, jobs = listed(bench)
    assert (feeds["activity"]["status"], feeds["activity"]["detail"]) == ("due", "1 new file")
    assert (jobs["counts"]["status"], jobs["counts"]["waiting"], jobs["counts"]["epoch"]) == ("fresh", 0, 2)
    bench.done("land activity")
    assert statuses(bench) == ("fresh", "due")
    bench.rows("h3", hour(3))
    bench.done("land activity")
    assert statuses(bench) == ("fresh", "behind")
    assert listed(bench)[1]["counts"]["detail"] == "2 landings wait"
    bench.done("run counts")
    assert statuses(bench) == ("fresh", "fresh")


def test_a_branch_that_lacks_landings_of_main_is_behind(bench: Bench) -> None:
    bench.done("backfill counts --from 1 --branch fix")
    (branch,) = listed(bench)[1]["counts"]["branches"]
    assert (branch["branch"], branch["status"], branch["waiting"]) == ("fix", "fresh", 0)
    bench.done("run counts --land")
    (branch,) = listed(bench)[1]["counts"]["branches"]
    assert (branch["status"], branch["detail"]) == ("behind", "1 landing waits")
    assert "counts fix" in bench.done("ls").out
    bench.done("branch drop counts fix")
    assert listed(bench)[1]["counts"]["branches"] == []


def test_what_was_never_landed_or_run_is_named_so(bench: Bench) -> None:
    bench.write("conf/feeds/other.yaml", FEED.replace("feed: activity", "feed: other"))
    later = JOB.replace("job: counts", "job: later").replace("alerts.totals", "later.totals")
    bench.write("conf/jobs/later.yaml", later)
    bench.write("conf/jobs/sums.yaml", later.replace("later", "sums").replace("feed: activity", "feed: other"))
    feeds, jobs = listed(bench)
    assert feeds["other"]["status"] == "never_landed"
    assert (jobs["later"]["status"], jobs["later"]["detail"]) == ("never_run", "2 landings wait")
    assert (jobs["sums"]["status"], jobs["sums"]["epoch"]) == ("never_run", None)
    assert "rewindow land other" in jobs["sums"]["detail"]
    assert "never run" in bench.run("ls").out


def test_a_branch_with_other_code_is_left_behind_and_not_broken(bench: Bench) -> None:
    bench.done("backfill counts --from 1 --branch trial")
    (trial,) = listed(bench)[1]["counts"]["branches"]
    assert trial["status"] == "fresh"
    bench.edit("bench_job.py", 'TimeWindows.of("30m"', 'TimeWindows.of("60m"')
    counts = listed(bench)[1]["counts"]
    (trial,) = counts["branches"]
    assert (counts["status"], trial["status"], trial["exit_code"]) == ("broken", "left_behind", 76)
    assert "left behind" in bench.run("ls").out


def test_backfills_without_a_name_are_counted(bench: Bench) -> None:
    bench.done("backfill counts --from 1", "backfill counts --from 2")
    assert [branch["branch"] for branch in listed(bench)[1]["counts"]["branches"]] == ["backfill-1", "backfill-2"]


BROKEN: dict[str, tuple[Callable[[Bench], None], int]] = {
    "a misspelt key": (lambda b: b.edit("conf/jobs/counts.yaml", "topology:", "topolgy:"), 78),
    "code that fails": (lambda b: b.write("bench_job.py", "1 / 0\n"), 78),
    "a table that is gone": (lambda b: shutil.rmtree(b.warehouse / "alerts/totals"), 74),
}


@pytest.mark.parametrize(("given", "code"), BROKEN.values(), ids=BROKEN)
def test_a_broken_job_hides_no_other(bench: Bench, given: Callable[[Bench], None], code: int) -> None:
    bench.write("other_job.py", (bench.root / "bench_job.py").read_text())
    other = JOB.replace("job: counts", "job: other").replace("alerts.totals", "other.totals")
    bench.write("conf/jobs/other.yaml", other.replace("bench_job", "other_job"))
    given(bench)
    feeds, jobs = listed(bench)
    assert (jobs["counts"]["status"], jobs["counts"]["exit_code"]) == ("broken", code)
    assert (jobs["other"]["status"], feeds["activity"]["status"]) == ("never_run", "due")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (lambda b: b.write("conf/feeds/activity.yaml", "feed: [\n"), 78),
        (lambda b: (b.root / "raw" / "h0.parquet").unlink(), 66),
    ],
    ids=["syntax", "a file is gone"],
)
def test_a_broken_feed_keeps_what_its_ledger_says_and_its_job_is_still_listed(
    bench: Bench, given: Callable[[Bench], None], code: int
) -> None:
    given(bench)
    feeds, jobs = listed(bench)
    assert (feeds["activity"]["status"], feeds["activity"]["exit_code"]) == ("broken", code)
    assert (feeds["activity"]["epoch"], feeds["activity"]["watermark_ms"]) == (2, jobs["counts"]["watermark_ms"])
    assert jobs["counts"]["status"] == "fresh"
    feed = status(bench, code=1)[0]["activity"]
    assert (feed["landings"], feed["watermark_ms"], feed["due"]) == (2, jobs["counts"]["watermark_ms"], None)
    assert (feed["rows"], feed["age_ms"] > 0) == (24, True)


def test_a_file_with_the_wrong_ending_breaks_no_other(bench: Bench) -> None:
    for kind in ("feeds", "jobs"):
        bench.write(f"conf/{kind}/stray.yml", "x: 1\n")
    feeds, jobs = listed(bench)
    assert (feeds["stray"]["status"], jobs["stray"]["status"]) == ("broken", "broken")
    assert statuses(bench) == ("due", "fresh")


def test_with_intervals_a_feed_is_due_for_new_files_and_fresh_while_its_interval_is_not_over(bench: Bench) -> None:
    bench.write("conf/feeds/hourly.yaml", HOURLY)
    assert listed(bench)[0]["hourly"]["status"] == "never_landed"
    bench.done("land hourly")
    assert (listed(bench)[0]["hourly"]["status"], listed(bench)[0]["hourly"]["epoch"]) == ("fresh", 3)
    bench.rows("h3", hour(3))
    assert listed(bench)[0]["hourly"]["status"] == "due"
    bench.done("land hourly")
    bench.rows("now", [{"user": "ann", "t": T0, "got": round(time.time() * 1000), "x": 1}])
    waiting = bench.json("land hourly")["waiting"]
    feed = listed(bench)[0]["hourly"]
    assert (feed["status"], feed["detail"]) == ("fresh", waiting.replace("1 row", "1 file"))
    assert bench.findings("hourly") == [], "an interval that is not over is no alert"


def test_an_empty_file_is_named_and_makes_no_feed_due(sample: Bench) -> None:
    sample.write("data/orders/zz.csv", "")
    report = sample.json("land orders")
    assert (report["landings"], report["warning_codes"]) == ([], ["files-without-rows"])
    assert sample.json("ls")["feeds"][0]["detail_codes"] == ["file-without-rows"]
    assert sample.findings() == []


def test_a_feed_is_due_while_a_file_has_landed_only_partly(bench: Bench) -> None:
    bench.write("conf/feeds/hourly.yaml", HOURLY)
    bench.rows("h3", [*hour(3), *hour(4)])
    end = datetime.fromtimestamp((T0 + 4 * HOUR) / 1000 // 3600 * 3600, UTC).isoformat()
    bench.done(f"land hourly --until {end}")
    assert listed(bench)[0]["hourly"]["status"] == "due"
    bench.done("land hourly")
    feed = listed(bench)[0]["hourly"]
    assert (feed["status"], feed["detail"]) == ("fresh", None)


def test_a_feed_of_outputs_is_due_when_its_job_has_run(bench: Bench) -> None:
    reads_totals(bench)
    assert listed(bench)[0]["totals"]["status"] == "never_landed"
    bench.done("land totals")
    assert listed(bench)[0]["totals"]["status"] == "fresh"
    bench.done("run counts --land")
    feed = listed(bench)[0]["totals"]
    assert (feed["status"], feed["detail_codes"]) == ("due", ["sources-have-new"])
    bench.done("land totals")
    bench.rows("keyless", [{**row, "user": None, "t": 1} for row in hour(0)])
    bench.done("run counts --land")
    assert bench.json("land totals")["landings"] == [], "an epoch without rows that moves no watermark"
    assert listed(bench)[0]["totals"]["status"] == "fresh"


def test_a_job_that_a_process_executes_is_running(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise NotNowError("made-up", "run main/3 is being executed by process 7 on this host: wait for it")

    monkeypatch.setattr("rewindow.app.listing.next_run", refuse)
    assert listed(bench)[1]["counts"]["status"] == "running"


SHOP = """\
feed: shop
partitions: 1
logs:
  orders: {source: {path: shop, format: csv}, key: user, timestamp: t, units: {t: ms}, arrived_at: t}
"""


@pytest.mark.parametrize("landing", ["", "landing: {every: 1h}\n"], ids=["files", "intervals"])
def test_a_file_with_only_a_header_is_not_due_until_it_has_rows(in_process: None, tmp_path: Path, landing: str) -> None:
    bench = Bench(tmp_path)
    bench.write("conf/targets/local.yaml", TARGET)
    bench.write("conf/feeds/shop.yaml", SHOP + landing)
    bench.write("shop/a.csv", f"user,t\nann,{T0}\n")
    bench.done("land shop")

    def entry() -> tuple[str, list[str]]:
        (feed,) = bench.json("ls")["feeds"]
        return feed["status"], feed["detail_codes"]

    bench.write("shop/b.csv", "user,t\n")
    assert entry() == ("fresh", ["file-without-rows"])
    assert bench.json("land shop")["landings"] == []
    bench.write("shop/c.csv", f"user,t\nbob,{T0 + HOUR}\n")
    assert entry() == ("due", ["sources-have-new", "file-without-rows"])
    bench.write("shop/b.csv", f"user,t\nbob,{T0 + HOUR}\n")
    bench.write("shop/c.csv", f"user,t\ncyd,{T0 + HOUR}\n")
    assert entry() == ("due", ["sources-have-new"])
    bench.done("land shop")
    assert entry() == ("fresh", [])
