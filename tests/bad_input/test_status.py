"""`rewindow status`: what is wrong with which feed or job, the command that helps, and an exit code for CI and cron."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.open_project import OpenProject
from rewindow.control.health.findings import Level
from rewindow.errors import StorageError
from rewindow.tables.delta.journal import Journal
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.table_access import FileAdapter
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import JOURNAL
from tests.bad_input.scene import FRESH, SCORE, TARGET, Bench, hour
from tests.bad_input.statuses import alerts, finding_of, status
from tests.refusals import told

FAILS = "def score(row):\n    return 1 / 0\n"


def test_all_is_well_exits_with_0_and_says_what_it_saw(bench: Bench) -> None:
    before = bench.files()
    feeds, jobs = status(bench)
    assert bench.files() == before
    feed, job = feeds["activity"], jobs["counts"]
    assert (feed["level"], feed["status"], feed["landings"], feed["due"]) == ("ok", "due", 2, True)
    assert (job["level"], job["status"], job["runs"], job["waiting"]) == ("ok", "fresh", 2, 0)
    assert (job["over_runs"], job["records"], job["late"], job["late_share"]) == (2, 24, 0, 0)
    assert (job["journal_files"], job["restore_runs"], job["lagging"]) == (2, 2, {})
    assert job["state_files"] > 0
    assert job["age_ms"] == pytest.approx(time.time() * 1000 - job["watermark_ms"], abs=60_000)


def test_a_refused_run_is_broken_and_named_with_its_command_the_worst_first(bench: Bench) -> None:
    bench.edit("bench_job.py", '"30m"', '"20m"')
    finding = finding_of(bench)
    assert (finding.level, finding.about, finding.command) == (Level.BROKEN, "refused", "rewindow plan counts")
    told([finding.message], "next-call-refused", what="run", exit_code=76)
    answer = bench.run("status")
    words = answer.out.split()
    assert (answer.code, words.index("broken") < words.index("ok")) == (1, True), answer.out
    assert ("\n  - " in answer.out, "\\n" in answer.out) == (True, False), answer.out


def test_a_mistake_in_a_file_has_no_command_that_would_only_say_the_same(bench: Bench) -> None:
    bench.write("conf/feeds/activity.yaml", "feed: activity\n   bad: [x\n")
    bench.write("conf/jobs/counts.yaml", "job: counts\n   bad: [x\n")
    findings = bench.findings()
    assert [(one.message.code, one.message.facts["exit_code"], one.command) for one in findings] == [
        ("next-call-refused", 78, None)
    ] * 2


def test_a_dead_run_is_broken_until_it_is_resumed(bench: Bench) -> None:
    bench.done("land activity")
    bench.code(FAILS)
    bench.refuses("run counts", "node-failed")
    finding = finding_of(bench)
    assert (finding.about, finding.command) == ("unfinished", "rewindow run counts")
    told([finding.message], "run-unfinished", run="main/3")
    bench.code(SCORE)
    bench.done("run counts")
    assert bench.findings() == []


def test_a_run_that_another_host_may_still_make_is_a_note_in_a_catalog(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.done("land activity")
    bench.code(FAILS)
    bench.refuses("run counts", "node-failed")
    bench.code(SCORE)
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    assert finding_of(bench, "counts").level == Level.BROKEN
    warehouse = str(bench.warehouse)  # the tables are files, and only the target says that a catalog has them
    monkeypatch.setattr(
        "rewindow.app.open_project.open_adapter", lambda *_of: (FileAdapter(DeltaTables(warehouse)), None)
    )
    bench.write("conf/targets/gov.yaml", "target: gov\nwarehouse: w\ncommit: spark\nstaging: rows\ncatalog: main.rw\n")
    findings = status(bench, "--target", "gov", code=1)[1]["counts"]["findings"]
    (unfinished,) = [one for one in findings if one["code"] == "run-unfinished"]  # its output has another name, too
    assert (unfinished["level"], unfinished["command"]) == ("note", None)


def test_a_dead_landing_is_broken_until_it_is_landed_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("tests.ingest.local_engine.LocalEngine.write", _fails, raising=False)
        patched.setattr("rewindow.engine.worker.landing.arrow_landing.ArrowLandingEngine.write", _fails, raising=False)
        bench.refuses("land activity", "made-up")
    finding = finding_of(bench)
    assert (finding.message.code, finding.command) == ("landing-unfinished", "rewindow land activity")
    bench.done("land activity")
    assert bench.findings() == []


def _fails(*_: Any, **__: Any) -> Any:
    raise StorageError("made-up", "the disk is gone: mount it")


@pytest.mark.parametrize(
    ("step", "tables", "command"),
    [("publish.commit_files", "tables", "run counts"), ("feeds.commit_actions", "logs", "land activity")],
)
def test_tables_behind_the_ledger_are_broken_because_readers_miss_rows(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str, tables: str, command: str
) -> None:
    if tables == "tables":
        bench.done("land activity")
    with monkeypatch.context() as patched:
        patched.setattr(f"rewindow.tables.delta.{step}", _fails)
        bench.refuses(command, "made-up")
    finding = finding_of(bench)
    assert finding.command == f"rewindow {command}"
    told([finding.message], "tables-behind-ledger", tables=tables)
    bench.done(command)
    assert bench.findings() == []


def test_a_job_whose_feed_has_no_file_is_broken(bench: Bench) -> None:
    feed = bench.root / "conf/feeds/activity.yaml"
    text = feed.read_text()
    feed.unlink()
    finding = finding_of(bench)
    assert (finding.message.code, finding.command) == ("landed-feed-without-file", "rewindow run counts --land")
    (listed,) = bench.json("ls")["jobs"]
    (job,) = bench.json("status")["jobs"]
    assert [job[word] for word in ("status", "exit_code", "detail")] == ["broken", 78, finding.message]
    assert all(listed[word] == job[word] for word in ("status", "exit_code", "detail", "waiting", "watermark_ms"))
    bench.refuses("run counts --land", "config-file-missing", folder="feeds")
    feed.write_text(text)
    assert bench.findings() == []


def test_a_command_that_would_be_refused_is_not_named(bench: Bench) -> None:
    shutil.rmtree(bench.warehouse / "alerts" / "totals")
    finding = finding_of(bench)  # and not that the table lags, which `run` would not repair
    assert (finding.about, "`rewindow republish counts`" in finding.message) == ("refused", True)
    bench.done("republish counts")
    assert bench.findings() == []


def test_a_landing_that_failed_is_over_once_its_file_is_gone(bench: Bench) -> None:
    bench.done("land activity")
    bench.rows("broken", [{**row, "t": -1} for row in hour(FRESH + 1)])
    assert bench.run("land", "activity").code == 65
    assert finding_of(bench).message.code == "landing-unfinished"
    (bench.root / "raw" / "broken.parquet").unlink()
    assert bench.json("land activity")["landings"] == []
    assert bench.findings() == []


def test_a_check_that_cannot_be_made_is_not_well(bench: Bench) -> None:
    for file in (bench.warehouse / JOURNAL / "job=counts").glob("*.parquet"):
        file.write_bytes(b"not what was committed")
    about = {finding.about: finding.message.code for finding in bench.findings()}
    assert about["figures"] == "check-not-possible"


def test_a_broken_feed_hides_nothing_else(bench: Bench) -> None:
    bench.write("conf/feeds/stray.yaml", "x: 1\n")
    bench.write("conf/jobs/wrong.yaml", "x: 1\n")
    feeds, jobs = status(bench, code=1)
    assert {name: one["level"] for name, one in (feeds | jobs).items()} == {
        **dict.fromkeys(("stray", "wrong"), "broken"),
        **dict.fromkeys(("activity", "counts"), "ok"),
    }
    assert list(feeds) == ["stray", "activity"]
    assert bench.findings("activity", "counts") == []


def test_a_branch_and_the_target_are_in_the_command(bench: Bench) -> None:
    bench.write("conf/targets/prod.yaml", TARGET.replace("target: local", "target: prod"))
    bench.done("backfill counts --from 1 --branch fix")
    alerts(bench, "freshness: 1h")
    (finding,) = bench.json("status counts --branch fix --target prod")["jobs"][0]["findings"]
    assert finding["command"] == "rewindow run counts --branch fix --target prod --land"
    bench.refuses("status --branch nobody", "branch-not-open-anywhere", branch="nobody")
    bench.refuses("status counts --branch nobody", "job-branch-not-open", branch="nobody")


@pytest.mark.parametrize(("line", "reads"), [("status", {"ledger": 2, "reports": 1}), ("ls", {"ledger": 2})])
def test_each_ledger_is_read_once_and_only_the_last_reports_without_spark(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, line: str, reads: dict[str, int]
) -> None:
    bench.done("backfill counts --from 1 --branch fix")
    alerts(bench, "late: 10%, runs: 1")
    counted: Counter[tuple[str, str]] = Counter()

    def counting(kind: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(table: Any, *rest: Any) -> Any:
            counted[kind, "" if kind == "reports" else f"{table.path} {table.name}"] += 1
            return read(table, *rest)

        return reading

    monkeypatch.setattr(Ledger, "read", counting("ledger", Ledger.read))
    monkeypatch.setattr(Journal, "read", counting("reports", Journal.read))
    monkeypatch.setattr(OpenProject, "spark", property(lambda _: pytest.fail("Spark was started")))
    bench.json(line)
    assert set(counted.values()) == {1}, counted
    assert Counter(kind for kind, _ in counted) == reads


def test_a_warehouse_in_which_nothing_was_landed_is_named(bench: Bench) -> None:
    bench.edit("conf/targets/local.yaml", "warehouse: warehouse", "warehouse: warehuose")
    assert str(bench.root / "warehuose") in bench.done("status").out


def test_an_empty_project_is_well_and_a_folder_that_is_none_is_not(bench: Bench, tmp_path: Path) -> None:
    for kind in ("feeds", "jobs"):
        shutil.rmtree(bench.root / "conf" / kind)
    for line in ("status", "ls"):
        found = bench.json(line)
        assert (found["feeds"], found["jobs"]) == ([], [])
    Bench(tmp_path).refuses("status", "project-folder-missing")
