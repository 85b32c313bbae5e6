"""`rewindow ls`: the status of every feed, job and branch, whatever is wrong with another one."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.open_project import OpenProject
from rewindow.errors import NotNowError
from rewindow.tables.delta.ledger import Ledger
from tests.bad_input.scene import FEED, HOURLY, JOB, Bench, Say, hour
from tests.bad_input.statuses import status
from tests.ingest.local_engine import HOUR, T0


def listed(bench: Bench) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the feeds and the jobs by name."""
    answer = bench.run("ls", "--json")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    return {one["feed"]: one for one in found["feeds"]}, {one["job"]: one for one in found["jobs"]}


def statuses(bench: Bench) -> tuple[str, str]:
    feeds, jobs = listed(bench)
    return feeds["activity"]["status"], jobs["counts"]["status"]


def test_what_waits_is_due_and_more_of_it_is_behind(bench: Bench) -> None:
    feeds, jobs = listed(bench)
    assert (feeds["activity"]["status"], feeds["activity"]["detail"]) == ("due", "1 new file")
    assert (jobs["counts"]["status"], jobs["counts"]["waiting"], jobs["counts"]["epoch"]) == ("fresh", 0, 2)
    assert bench.run("land", "activity").code == 0
    assert statuses(bench) == ("fresh", "due")
    bench.rows("h3", hour(3))
    assert bench.run("land", "activity").code == 0
    assert statuses(bench) == ("fresh", "behind")
    assert listed(bench)[1]["counts"]["detail"] == "2 landings wait"
    assert bench.run("run", "counts").code == 0
    assert statuses(bench) == ("fresh", "fresh")


def test_a_branch_that_lacks_landings_of_main_is_behind(bench: Bench) -> None:
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    (branch,) = listed(bench)[1]["counts"]["branches"]
    assert (branch["branch"], branch["status"], branch["waiting"]) == ("fix", "fresh", 0)
    assert bench.run("run", "counts", "--land").code == 0
    (branch,) = listed(bench)[1]["counts"]["branches"]
    assert (branch["status"], branch["detail"]) == ("behind", "1 landing waits")
    assert "counts fix" in bench.run("ls").out
    assert bench.run("branch", "drop", "counts", "fix").code == 0
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


BROKEN: dict[str, tuple[Callable[[Bench], None], int, str]] = {
    "a misspelt key": (lambda b: b.edit("conf/jobs/counts.yaml", "topology:", "topolgy:"), 78, "line 2: topolgy"),
    "an unknown feed": (lambda b: b.edit("conf/jobs/counts.yaml", "feed: activity", "feed: activty"), 78, "`activity`"),
    "code that fails": (lambda b: b.write("bench_job.py", "1 / 0\n"), 78, "ZeroDivisionError"),
    "no module": (lambda b: (b.root / "bench_job.py").unlink(), 78, "cannot import"),
    "a changed topology": (lambda b: b.edit("bench_job.py", '"30m"', '"20m"'), 76, "has changed since the checkpoint"),
    "a table that is gone": (lambda b: shutil.rmtree(b.warehouse / "alerts/totals"), 74, "rewindow republish counts"),
}


@pytest.mark.parametrize(("given", "code", "says"), BROKEN.values(), ids=BROKEN)
def test_a_broken_job_says_why_and_hides_no_other(
    bench: Bench, given: Callable[[Bench], None], code: int, says: str
) -> None:
    bench.write("other_job.py", (bench.root / "bench_job.py").read_text())
    other = JOB.replace("job: counts", "job: other").replace("alerts.totals", "other.totals")
    bench.write("conf/jobs/other.yaml", other.replace("bench_job", "other_job"))
    given(bench)
    feeds, jobs = listed(bench)
    assert (jobs["counts"]["status"], jobs["counts"]["exit_code"]) == ("broken", code)
    assert says in jobs["counts"]["detail"]
    assert (jobs["other"]["status"], feeds["activity"]["status"]) == ("never_run", "due")
    shown = bench.run("ls")
    assert (shown.code, "broken" in shown.out, shown.err) == (0, True, "")


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (lambda b: b.write("conf/feeds/activity.yaml", "feed: [\n"), 78, "line 2"),
        (
            lambda b: b.edit("conf/feeds/activity.yaml", "partitions: 2", "partitions: 3"),
            66,
            "another definition|different",
        ),
        (lambda b: (b.root / "raw" / "h0.parquet").unlink(), 66, "is gone"),
        (
            lambda b: (b.root / "conf/feeds/activity.yaml").rename(b.root / "conf/feeds/activity.yml") and None,
            78,
            "rename",
        ),
    ],
    ids=["syntax", "another definition", "a file is gone", "the wrong ending"],
)
def test_a_broken_feed_says_why_and_its_job_is_still_listed(
    bench: Bench, given: Callable[[Bench], None], code: int, says: str
) -> None:
    given(bench)
    feeds, jobs = listed(bench)
    assert (feeds["activity"]["status"], feeds["activity"]["exit_code"]) == ("broken", code)
    assert any(words in feeds["activity"]["detail"] for words in says.split("|"))
    assert (feeds["activity"]["epoch"], feeds["activity"]["watermark_ms"]) == (2, jobs["counts"]["watermark_ms"])
    feed = status(bench, code=1)[0]["activity"]
    assert (feed["landings"], feed["watermark_ms"], feed["due"]) == (2, jobs["counts"]["watermark_ms"], None)
    assert feed["rows"] == 24
    assert feed["age_ms"] > 0
    assert jobs["counts"]["status"] == "fresh"


def test_a_file_with_the_wrong_ending_breaks_no_other(bench: Bench) -> None:
    for kind in ("feeds", "jobs"):
        bench.write(f"conf/{kind}/stray.yml", "x: 1\n")
    feeds, jobs = listed(bench)
    assert (feeds["stray"]["status"], jobs["stray"]["status"]) == ("broken", "broken")
    assert statuses(bench) == ("due", "fresh")


def test_with_intervals_a_feed_is_due_for_new_files_and_fresh_while_its_interval_is_not_over(bench: Bench) -> None:
    name = "hourly"
    bench.write("conf/feeds/hourly.yaml", HOURLY)
    assert listed(bench)[0][name]["status"] == "never_landed"
    assert bench.run("land", name).code == 0
    feed = listed(bench)[0][name]
    assert (feed["status"], feed["epoch"]) == ("fresh", 3)
    bench.rows("h3", hour(3))
    assert listed(bench)[0][name]["status"] == "due"
    assert bench.run("land", name).code == 0
    assert listed(bench)[0][name]["status"] == "fresh"


def test_new_files_with_rows_of_the_current_interval_only_make_no_feed_due(bench: Bench) -> None:
    name = "hourly"
    bench.write("conf/feeds/hourly.yaml", HOURLY)
    assert bench.run("land", name).code == 0
    bench.rows("now", [{"user": "ann", "t": T0, "got": round(time.time() * 1000), "x": 1}])
    waiting = bench.run("land", name).out
    feed = listed(bench)[0][name]
    assert feed["status"] == "fresh"
    assert feed["detail"].startswith("1 file is waiting: the interval from ")
    assert feed["detail"].removeprefix("1 file") in waiting
    assert "well" in bench.run("status").out, "an interval that is not over is no alert"


def test_an_empty_file_is_named_and_makes_no_feed_due(say: Say, shop: Path) -> None:
    assert say("land", "orders")[0] == 0
    (shop / "data/orders/zz.csv").touch()
    code, text = say("land", "orders")
    assert (code, "Feed orders: nothing new to land." in text) == (0, True), text
    assert "warning: feed orders: zz.csv of the log orders has no rows, and will be landed once it has some" in text
    code, text = say("ls")
    assert (code, "zz.csv has no rows" in text) == (0, True), text
    assert "all is well." in say("status")[1]


def test_a_feed_is_due_while_a_file_has_landed_only_partly(bench: Bench) -> None:
    name = "hourly"
    bench.write("conf/feeds/hourly.yaml", HOURLY)
    bench.rows("h3", [*hour(3), *hour(4)])
    end = datetime.fromtimestamp((T0 + 4 * HOUR) / 1000 // 3600 * 3600, UTC).isoformat()
    assert bench.run("land", name, "--until", end).code == 0
    feed = listed(bench)[0][name]
    assert (feed["status"], feed["detail"]) == ("due", "landed files hold rows of later intervals")
    assert bench.run("land", name).code == 0
    feed = listed(bench)[0][name]
    assert (feed["status"], feed["detail"]) == ("fresh", None)


def test_a_feed_of_outputs_is_due_when_its_job_has_run(bench: Bench) -> None:
    source = "{job: counts, output: totals}"
    log = f"logs:\n  totals: {{source: {source}, key: user, timestamp: _timestamp}}\n"
    bench.write("conf/feeds/totals.yaml", f"feed: totals\npartitions: 2\n{log}")
    assert listed(bench)[0]["totals"]["status"] == "never_landed"
    answer = bench.run("land", "totals")
    assert answer.code == 0, answer
    assert listed(bench)[0]["totals"]["status"] == "fresh"
    assert bench.run("run", "counts", "--land").code == 0
    feed = listed(bench)[0]["totals"]
    assert (feed["status"], feed["detail"]) == ("due", "1 new epoch of its job")


def test_a_feed_of_outputs_is_not_due_for_an_epoch_without_rows_that_moves_no_watermark(bench: Bench) -> None:
    log = "logs:\n  totals: {source: {job: counts, output: totals}, key: user, timestamp: _timestamp}\n"
    bench.write("conf/feeds/totals.yaml", f"feed: totals\npartitions: 2\n{log}")
    assert bench.run("run", "counts", "--land").code == 0
    assert bench.run("land", "totals").code == 0
    bench.rows("keyless", [{**row, "user": None, "t": 1} for row in hour(0)])
    assert bench.run("run", "counts", "--land").code == 0
    landed = bench.run("land", "totals")
    assert (landed.code, "nothing new to land" in landed.out) == (0, True), landed
    feed = listed(bench)[0]["totals"]
    assert (feed["status"], feed["detail"]) == (
        "fresh",
        "complete through 35m less than its job, which may hold rows back",
    )


def test_a_job_that_a_process_executes_is_running(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise NotNowError("of-a-test", "run main/3 is being executed by process 7 on this host: wait for it")

    monkeypatch.setattr("rewindow.app.listing.next_run", refuse)
    assert listed(bench)[1]["counts"]["status"] == "running"


def test_each_ledger_is_read_once_and_spark_is_not_started(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    reads: Counter[str] = Counter()
    read = Ledger.read

    def counted(ledger: Ledger) -> Any:
        reads[f"{ledger.path} {ledger.name}"] += 1
        return read(ledger)

    monkeypatch.setattr(Ledger, "read", counted)
    monkeypatch.setattr(OpenProject, "spark", property(lambda _: pytest.fail("Spark was started")))
    listed(bench)
    assert set(reads.values()) == {1}, reads
    assert len(reads) == 2


def test_an_empty_project_and_a_folder_that_is_none(bench: Bench, tmp_path: Path) -> None:
    shutil.rmtree(bench.root / "conf/feeds")
    shutil.rmtree(bench.root / "conf/jobs")
    assert "There are no feeds and jobs yet" in bench.run("ls").out
    assert Bench(tmp_path).run("ls").code == 78
