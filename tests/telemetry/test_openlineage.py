"""What a consumer of OpenLineage is told by each command, validated with the published schemas."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input.scene import Bench, hour
from tests.telemetry.consumer import Consumer

PARENT = "airflow/daily.run/01a20630-6cf0-703f-b6b9-fe06a7fe0eab"


def types(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["eventType"], event["job"]["name"]) for event in events]


def told(event: dict[str, Any]) -> dict[str, Any]:
    return event["run"]["facets"]["rewindow_run"]


def only(datasets: list[dict[str, Any]]) -> dict[str, Any]:
    (one,) = datasets
    return one


def test_a_landing_tells_its_sources_and_its_logs_with_landings_and_versions(bench: Bench, consumer: Consumer):
    assert bench.run("land", "activity").code == 0
    start, complete = consumer.take()
    assert types([start, complete]) == [("START", "shop.activity.land"), ("COMPLETE", "shop.activity.land")]
    assert start["run"]["runId"] == complete["run"]["runId"]
    source, log = only(complete["inputs"]), only(complete["outputs"])
    assert (source["namespace"], source["name"]) == ("file", str(bench.root / "raw"))
    assert source["inputFacets"]["inputStatistics"]["rowCount"] == 12
    assert (log["namespace"], log["name"]) == ("file", str(bench.warehouse / "logs/activity/events"))
    assert log["facets"]["version"]["datasetVersion"] == "3"
    landings = log["facets"]["rewindow_landings"]
    assert {name: landings[name] for name in ("feed", "topic", "generation", "first", "last")} == {
        "feed": "activity",
        "topic": "events",
        "generation": 1,
        "first": 3,
        "last": 3,
    }
    assert log["outputFacets"]["outputStatistics"]["rowCount"] == 12
    assert told(complete)["outcome"] == "committed"


def test_a_run_tells_epochs_digest_and_late_counts(bench: Bench, consumer: Consumer):
    late = [{"user": "ann", "t": hour(0)[0]["t"], "got": hour(2)[0]["got"], "x": 1}]
    bench.rows("late", late)
    bench.run("land", "activity")
    consumer.take()
    answer = bench.run("run", "counts", "--json")
    printed = json.loads(answer.out)
    start, complete = consumer.take()
    assert types([start, complete]) == [("START", "shop.counts.run"), ("COMPLETE", "shop.counts.run")]
    assert start["eventTime"] <= complete["eventTime"]
    assert [one["name"] for one in start["inputs"]] == [str(bench.warehouse / "logs/activity/events")]
    assert [one["name"] for one in start["outputs"]] == [str(bench.warehouse / "alerts/totals")]
    facet, output = told(complete), only(complete["outputs"])
    assert facet["epochs"] == printed["epochs"] == [3, 3]
    assert facet["run"] == "main/3"
    assert facet["late"] == 1
    assert facet["dropped"] == printed["summary"]["dropped"]
    assert facet["records"] == printed["consumed"] == {"events": 13}
    assert facet["digests"] == {"totals": printed["published"][0]["digest"]}
    assert facet["behind"] == 0
    assert output["facets"]["version"]["datasetVersion"] == str(printed["published"][0]["version"])
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == printed["published"][0]["rows"]
    assert output["facets"]["symlinks"]["identifiers"] == [
        {"namespace": f"file:{bench.warehouse}", "name": "alerts.totals", "type": "TABLE"}
    ]
    read = only(complete["inputs"])
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 13
    assert (read["facets"]["rewindow_landings"]["first"], read["facets"]["rewindow_landings"]["last"]) == (3, 3)


def test_a_run_with_nothing_to_do_completes_without_tables(bench: Bench, consumer: Consumer):
    bench.run("run", "counts")
    complete = consumer.take()[-1]
    assert complete["eventType"] == "COMPLETE"
    assert (complete["inputs"], complete["outputs"]) == ([], [])
    assert told(complete)["outcome"] == "nothing_to_do"
    assert told(complete)["reason"]


def test_a_failed_run_tells_the_exit_code_and_the_fix(bench: Bench, consumer: Consumer):
    bench.run("land", "activity")
    consumer.take()
    bench.code("def score(row):\n    return row.nothing\n")
    answer = bench.run("run", "counts")
    assert answer.code != 0
    start, fail = consumer.take()
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    message = fail["run"]["facets"]["errorMessage"]["message"]
    assert message.startswith(f"exit code {answer.code}: ")
    assert message.removeprefix(f"exit code {answer.code}: ") in answer.err.replace("\n", " ")
    assert told(fail)["exit_code"] == answer.code
    assert told(fail)["next"] == "fail at once"


def test_an_unknown_job_fails_with_an_event_of_its_own(bench: Bench, consumer: Consumer):
    answer = bench.run("run", "nobody")
    start, fail = consumer.take()
    assert types([start, fail]) == [("START", "shop.nobody.run"), ("FAIL", "shop.nobody.run")]
    assert told(fail)["exit_code"] == answer.code == 78


def test_ctrl_c_aborts(bench: Bench, consumer: Consumer, monkeypatch: pytest.MonkeyPatch):
    bench.run("land", "activity")
    consumer.take()

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rewindow.control.ledger_steps.drive", interrupted)
    assert bench.run("run", "counts").code == 130
    assert consumer.take()[-1]["eventType"] == "ABORT"


def test_a_backfill_is_the_parent_of_its_runs_and_a_promotion_names_both_tables(bench: Bench, consumer: Consumer):
    bench.code("def score(row):\n    return row.x * 3\n")
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    events = consumer.take()
    assert types(events) == [
        ("START", "shop.counts.backfill"),
        ("START", "shop.counts.branch-run"),
        ("COMPLETE", "shop.counts.branch-run"),
        ("COMPLETE", "shop.counts.backfill"),
    ]
    parent = events[2]["run"]["facets"]["parent"]
    assert parent["run"]["runId"] == events[0]["run"]["runId"]
    assert parent["job"]["name"] == parent["root"]["job"]["name"] == "shop.counts.backfill"
    assert told(events[3])["runs"] == ["fix/1"]
    assert only(events[2]["outputs"])["name"].endswith("alerts/totals__fix")
    assert bench.run("promote", "counts", "fix").code == 0
    complete = consumer.take()[-1]
    assert complete["job"]["name"] == "shop.counts.promote"
    assert only(complete["inputs"])["name"].endswith("alerts/totals__fix")
    published = only(complete["outputs"])
    assert published["name"].endswith("alerts/totals")
    assert published["facets"]["rewindow_commit"]["run"] == "fix/1"
    assert bench.run("rewind", "counts", "--to", "0").code == 0
    complete = consumer.take()[-1]
    assert told(complete)["rewound"] == ["fix/1"]
    assert only(complete["outputs"])["name"].endswith("alerts/totals")


def test_a_run_on_hold_names_no_table_before_it_is_accepted(bench: Bench, consumer: Consumer):
    item = "{rows: {max: 0}, on_fail: hold}"
    expecting = f"  totals:\n    table: alerts.totals\n    expect:\n      - {item}\n"
    bench.edit("conf/jobs/counts.yaml", "  totals: {table: alerts.totals}\n", expecting)
    assert bench.run("run", "counts", "--land").code == 79
    complete = consumer.take()[-1]
    assert (told(complete)["run"], complete["outputs"]) == ("main/3", [])
    assert bench.run("publish", "counts", "--accept").code == 0
    complete = consumer.take()[-1]
    assert complete["job"]["name"] == "shop.counts.publish"
    assert (told(complete)["accepted"], told(complete)["on_hold"]) == ("main/3", [])
    assert only(complete["outputs"])["facets"]["rewindow_commit"]["run"] == "main/3"


def test_the_task_of_a_scheduler_is_the_parent(bench: Bench, consumer: Consumer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", PARENT)
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "prod")
    bench.run("run", "counts")
    for event in consumer.take():
        assert event["job"]["namespace"] == "prod"
        parent = event["run"]["facets"]["parent"]
        assert f"{parent['job']['namespace']}/{parent['job']['name']}/{parent['run']['runId']}" == PARENT


def test_a_parent_that_is_no_run_is_left_out_with_one_warning(
    bench: Bench, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", "daily")
    answer = bench.run("run", "counts")
    assert answer.code == 0
    assert answer.err.count("warning") == 1
    assert all("parent" not in event["run"]["facets"] for event in consumer.take())


def test_run_ids_are_uuids_of_version_7(bench: Bench, consumer: Consumer):
    bench.run("run", "counts")
    (found,) = {event["run"]["runId"] for event in consumer.take()}
    assert uuid.UUID(found).version == 7


@pytest.mark.parametrize("logged", [(), ("--log-format", "json")])
def test_an_unreachable_consumer_gives_one_warning_and_no_other_exit_code(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, logged: tuple[str, ...]
):
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__RETRY", '{"total": 0}')
    answer = bench.run("land", "activity", *logged)
    assert answer.code == 0
    lines = [line for line in answer.err.splitlines() if "OpenLineage" in line]
    assert len(lines) == 1, answer.err
    assert json.loads(lines[0])["level"] == "warning" if logged else lines[0].startswith("rewindow: warning: ")
    assert "Traceback" not in answer.err


def test_a_client_that_is_not_installed_gives_one_warning(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    for name in ("openlineage", "openlineage.client", "rewindow.app.telemetry.openlineage_events"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    answer = bench.run("run", "counts")
    assert answer.code == 0
    assert answer.err.count("pip install 'rewindow[openlineage]'") == 1


def test_events_go_to_a_file_if_openlineage_yml_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    log = tmp_path / "events.jsonl"
    config = tmp_path / "openlineage.yml"
    config.write_text(f"transport: {{type: file, log_file_path: {log}, append: true}}\n", encoding="utf-8")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    assert bench.run("run", "counts").code == 0
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]


@pytest.mark.parametrize("how", ["open", "foreign"])
def test_a_file_of_others_in_the_working_folder_sends_nothing_unless_it_is_named(
    how: str, bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Otherwise, whoever may write into `/tmp` gets the messages of commands there, or has them appended to any file."""
    config, events = tmp_path / "openlineage.yml", tmp_path / "of_somebody"
    config.write_text(f"transport: {{type: file, log_file_path: {events}, append: true}}\n")
    monkeypatch.chdir(tmp_path)
    if how == "open":
        config.chmod(0o666)
    elif os.geteuid() == 0:
        os.chown(config, 65533, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
    answer = bench.run("land", "activity")
    assert answer.code == 0
    assert answer.err.count("OPENLINEAGE_CONFIG") == 1
    assert not events.exists()
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    bench.done("run counts")
    assert events.exists()


def test_a_disabled_client_sends_nothing(bench: Bench, consumer: Consumer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    assert bench.run("run", "counts").code == 0
    assert consumer.events == []


DECLARATIVE = """\
from rewindow import Count, StreamsBuilder, Sum, TimeWindows, until_window_closes


def build_topology():
    builder = StreamsBuilder()
    (
        builder.stream("events")
        .where("x >= 0")
        .group_by_key()
        .windowed_by(TimeWindows.of("30m", grace="5m"))
        .aggregate({"n": Count(), "x": Sum("x")}, store="sums")
        .suppress(until_window_closes())
        .to_stream()
        .to("totals")
    )
    return builder.build()
"""


def test_a_declarative_job_tells_where_each_column_comes_from(bench: Bench, consumer: Consumer):
    bench.write("bench_job.py", DECLARATIVE)
    bench.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.sums")
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    events = [event for event in consumer.take() if event["job"]["name"].endswith("branch-run")]
    log = {"namespace": "file", "name": str(bench.warehouse / "logs/activity/events")}
    for event in events:  # START says so, too
        facet = only(event["outputs"])["facets"]["columnLineage"]
        assert facet["fields"]["user"]["inputFields"] == [
            {**log, "field": "user", "transformations": [{"type": "DIRECT", "subtype": "IDENTITY", "masking": False}]}
        ]
        (total,) = facet["fields"]["x"]["inputFields"]
        assert total["field"] == "x"
        assert total["transformations"][0]["subtype"] == "AGGREGATION"
        assert facet["fields"]["n"]["inputFields"] == []
        deciding = {(field["field"], field["transformations"][0]["subtype"]) for field in facet["dataset"]}
        assert deciding == {("x", "FILTER"), ("user", "GROUP_BY")}


def test_no_column_origins_are_claimed_for_python_functions(bench: Bench, consumer: Consumer):
    bench.run("land", "activity")
    bench.run("run", "counts")
    landed, ran = (event for event in consumer.take() if event["eventType"] == "COMPLETE")
    assert "columnLineage" not in only(ran["outputs"])["facets"]
    fields = only(landed["outputs"])["facets"]["columnLineage"]["fields"]
    assert fields["x"]["inputFields"][0] == {
        "namespace": "file",
        "name": str(bench.root / "raw"),
        "field": "x",
        "transformations": [{"type": "DIRECT", "subtype": "IDENTITY", "masking": False}],
    }
