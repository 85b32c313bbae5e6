"""`rewindow status`: what is wrong with which feed or job, the command that helps, and an exit code for CI and cron."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.open_project import OpenProject
from rewindow.errors import StorageError
from rewindow.tables.delta.adapter import FileAdapter
from rewindow.tables.delta.journal import Journal
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import JOURNAL
from tests.bad_input.scene import FRESH, TARGET, Bench, hour
from tests.bad_input.statuses import alerts, only, status

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
    shown = bench.run("status")
    assert shown.code == 0
    assert "1 feed and 1 job: all is well." in shown.out


def test_a_refused_run_is_broken_and_named_with_its_command(bench: Bench) -> None:
    bench.edit("bench_job.py", '"30m"', '"20m"')
    finding = only(status(bench, code=1)[1]["counts"])
    assert (finding["level"], finding["about"], finding["command"]) == ("broken", "refused", "rewindow plan counts")
    assert "(76)" in finding["message"]
    assert "has changed since the checkpoint" in finding["message"]
    shown = bench.run("status")
    assert shown.code == 1
    assert "1 feed and 1 job: 1 needs attention." in shown.out
    first = [line.split()[:5:2] for line in shown.out.splitlines()]
    assert first.index(["broken", "job", "counts"]) < first.index(["ok", "feed", "activity"]), "worst first"


def test_a_mistake_in_a_file_has_no_command_that_would_only_say_the_same(bench: Bench) -> None:
    bench.write("conf/feeds/activity.yaml", "feed: activity\n   bad: [x\n")
    bench.write("conf/jobs/counts.yaml", "job: counts\n   bad: [x\n")
    feeds, jobs = status(bench, code=1)
    for subject, file in ((feeds["activity"], "conf/feeds/activity.yaml"), (jobs["counts"], "conf/jobs/counts.yaml")):
        finding = only(subject)
        assert (finding["about"], finding["command"]) == ("refused", None), finding
        assert f"(78): {file}, line 2" in finding["message"]
    assert "`rewindow " not in bench.run("status").out


def test_a_dead_run_is_broken_until_it_is_resumed(bench: Bench) -> None:
    assert bench.run("land", "activity").code == 0
    bench.code(FAILS)
    assert bench.run("run", "counts").code == 65
    finding = only(status(bench, code=1)[1]["counts"])
    assert (finding["about"], finding["command"]) == ("unfinished", "rewindow run counts")
    assert "run main/3 is planned since 20" in finding["message"]
    bench.code("def score(row):\n    return row.x * 2\n")
    assert bench.run("run", "counts").code == 0
    status(bench)


def test_a_run_that_another_host_may_still_make_is_a_note_in_a_catalog(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bench.run("land", "activity").code == 0
    bench.code(FAILS)
    assert bench.run("run", "counts").code == 65
    bench.code("def score(row):\n    return row.x * 2\n")
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    assert only(status(bench, code=1)[1]["counts"])["level"] == "broken"
    warehouse = str(bench.warehouse)  # the tables are files, and only the target says that a catalog has them
    monkeypatch.setattr(
        "rewindow.app.open_project.open_adapter", lambda *_of: (FileAdapter(DeltaTables(warehouse)), None)
    )
    bench.write("conf/targets/gov.yaml", "target: gov\nwarehouse: w\ncommit: spark\nstaging: rows\ncatalog: main.rw\n")
    _, finding = status(bench, "--target", "gov", code=1)[1]["counts"][
        "findings"
    ]  # the first: its output has another name
    assert (finding["level"], finding["about"], finding["command"]) == ("note", "unfinished", None)
    assert "may still run, or has ended: no heartbeat of it is here" in finding["message"]


def test_a_dead_landing_is_broken_until_it_is_landed_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("tests.ingest.local_engine.LocalEngine.write", _fails, raising=False)
        patched.setattr("rewindow.engine.worker.landing.arrow_landing.ArrowLandingEngine.write", _fails, raising=False)
        answer = bench.run("land", "activity")
        assert answer.code == 74, answer
    finding = only(status(bench, code=1)[0]["activity"])
    assert (finding["about"], finding["command"]) == ("unfinished", "rewindow land activity")
    assert bench.run("land", "activity").code == 0
    status(bench)


def _fails(*_: Any, **__: Any) -> Any:
    raise StorageError("made-up", "the disk is gone: mount it")


def test_tables_behind_the_ledger_are_broken_because_readers_miss_rows(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("rewindow.tables.delta.publish.commit_files", _fails)
        assert bench.run("land", "activity").code == 0
        assert bench.run("run", "counts").code == 74
    job = status(bench, code=1)[1]["counts"]
    finding = only(job)
    assert (finding["about"], finding["command"]) == ("lagging", "rewindow run counts")
    assert job["lagging"]["output/totals"] == 1
    assert bench.run("run", "counts").code == 0
    status(bench)


def test_a_job_whose_feed_has_no_file_is_broken(bench: Bench) -> None:
    feed = bench.root / "conf/feeds/activity.yaml"
    text = feed.read_text()
    feed.unlink()
    finding = only(status(bench, code=1)[1]["counts"])
    assert (finding["about"], finding["command"]) == ("refused", "rewindow run counts --land")
    assert "there is no conf/feeds/activity.yaml. Restore the file as it was" in finding["message"]
    (listed,) = json.loads(bench.run("ls", "--json").out)["jobs"]
    job = status(bench, code=1)[1]["counts"]
    assert [job[word] for word in ("status", "exit_code", "detail")] == ["broken", 78, finding["message"]]
    assert all(listed[word] == job[word] for word in ("status", "exit_code", "detail", "waiting", "watermark_ms"))
    assert bench.run("run", "counts", "--land").code == 78
    feed.write_text(text)
    status(bench)


def test_a_command_that_would_be_refused_is_not_named(bench: Bench) -> None:
    shutil.rmtree(bench.warehouse / "alerts" / "totals")
    job = status(bench, code=1)[1]["counts"]
    finding = only(job)  # and not that the table lags, which `run` would not repair
    assert (finding["about"], "rewindow republish counts" in finding["message"]) == ("refused", True)
    assert "is gone" in finding["message"]
    assert job["lagging"] == {"output/totals": 2}
    assert "`rewindow run counts`" not in bench.run("status").out
    assert bench.run("republish", "counts").code == 0
    status(bench)


def test_a_landing_that_failed_is_over_once_its_file_is_gone(bench: Bench) -> None:
    file = bench.root / "raw" / "broken.parquet"
    bench.run("land", "activity")
    bench.rows("broken", [{**row, "t": -1} for row in hour(FRESH + 1)])
    assert bench.run("land", "activity").code == 65
    assert "began to land" in only(status(bench, code=1)[0]["activity"])["message"]
    file.unlink()
    answer = bench.run("land", "activity")
    assert (answer.code, "nothing new to land" in answer.out) == (0, True), answer
    status(bench)
    before = bench.decided()
    assert bench.run("land", "activity").code == 0
    assert bench.decided() == before


def test_logs_behind_the_ledger_are_broken(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("rewindow.tables.delta.feeds.commit_actions", _fails)
        assert bench.run("land", "activity").code == 74
    finding = only(status(bench, code=1)[0]["activity"])
    assert (finding["about"], finding["command"]) == ("lagging", "rewindow land activity")
    assert "events by 1 landing" in finding["message"]
    assert bench.run("land", "activity").code == 0
    status(bench)


def test_a_check_that_cannot_be_made_is_not_well(bench: Bench) -> None:
    for file in (bench.warehouse / JOURNAL / "job=counts").glob("*.parquet"):
        file.write_bytes(b"not what was committed")
    job = status(bench, code=1)[1]["counts"]
    about = {one["about"]: one for one in job["findings"]}
    assert "this could not be checked" in about["figures"]["message"]
    assert "rewindow republish" in about["figures"]["message"]
    assert "late_share" not in job


def test_a_broken_feed_hides_nothing_else(bench: Bench) -> None:
    bench.write("conf/feeds/stray.yaml", "x: 1\n")
    bench.write("conf/jobs/wrong.yaml", "x: 1\n")
    feeds, jobs = status(bench, code=1)
    assert (feeds["stray"]["level"], feeds["activity"]["level"]) == ("broken", "ok")
    assert (jobs["wrong"]["level"], jobs["counts"]["level"]) == ("broken", "ok")
    assert list(feeds) == ["stray", "activity"]
    status(bench, "activity", "counts")
    assert list(status(bench, "wrong", code=1)[1]) == ["wrong"]


def test_a_branch_is_checked_like_main(bench: Bench) -> None:
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    assert status(bench, "--branch", "fix")[1]["counts"]["runs"] == 1
    alerts(bench, "freshness: 1h")
    finding = only(status(bench, "counts", "--branch", "fix", code=1)[1]["counts"])
    assert finding["command"] == "rewindow run counts --branch fix --land"
    for words in (("--branch", "nobody"), ("counts", "--branch", "nobody")):
        answer = bench.run("status", *words)
        assert answer.code == 2
        assert "rewindow branch list" in answer.err


def test_an_unknown_name_is_a_mistake_on_the_command_line(bench: Bench) -> None:
    answer = bench.run("status", "cuonts")
    assert answer.code == 2
    assert "[status-name-unknown]" in answer.err
    assert "did you mean `counts`?" in answer.err


def test_commands_name_the_target(bench: Bench) -> None:
    bench.write("conf/targets/prod.yaml", TARGET.replace("target: local", "target: prod"))
    alerts(bench, "freshness: 1h")
    finding = only(status(bench, "--target", "prod", code=1)[1]["counts"])
    assert finding["command"] == "rewindow run counts --target prod --land"


def test_each_ledger_is_read_once_and_only_the_last_reports_without_spark(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts(bench, "late: 10%, runs: 1")
    reads: Counter[str] = Counter()
    read_ledger, read_journal = Ledger.read, Journal.read

    def ledger(self: Ledger) -> Any:
        reads[f"{self.path} {self.name}"] += 1
        return read_ledger(self)

    def journal(self: Journal, *rest: Any) -> Any:
        reads["reports"] += 1
        return read_journal(self, *rest)

    monkeypatch.setattr(Ledger, "read", ledger)
    monkeypatch.setattr(Journal, "read", journal)
    monkeypatch.setattr(OpenProject, "spark", property(lambda _: pytest.fail("Spark was started")))
    status(bench)
    assert set(reads.values()) == {1}, reads
    assert len(reads) == 3


def test_a_warehouse_in_which_nothing_was_landed_is_named(bench: Bench) -> None:
    said = "Nothing was landed in the warehouse"
    assert said not in bench.run("status").out
    bench.edit("conf/targets/local.yaml", "warehouse: warehouse", "warehouse: warehuose")
    answer = bench.run("status")
    assert answer.code == 0
    assert f"{said} {bench.root / 'warehuose'} yet." in answer.out
    assert "correct `warehouse:` in conf/targets/local.yaml." in answer.out
    assert said not in bench.run("status", "counts").out


def test_an_empty_project_is_well_and_a_folder_that_is_none_is_not(bench: Bench, tmp_path: Path) -> None:
    for kind in ("feeds", "jobs"):
        for file in (bench.root / "conf" / kind).iterdir():
            file.unlink()
    assert "There are no feeds and jobs yet" in bench.run("status").out
    assert Bench(tmp_path).run("status").code == 78
