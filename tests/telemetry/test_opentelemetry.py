"""Spans and metrics, as the SDK's in-memory and console exporters get them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rewindow.app.telemetry import opentelemetry_setup
from rewindow.app.telemetry.opentelemetry_setup import exporter_names
from rewindow.app.telemetry.spans_and_metrics import SpanObserver
from rewindow.app.telemetry.telemetry import Telemetry, has_opentelemetry
from tests.bad_input.scene import Bench, hour


class Memory:
    """The SDK with exporters that keep everything."""

    def __init__(self) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.meters = MeterProvider(metric_readers=[self._reader])

    def spans(self) -> list[Any]:
        """Return the finished spans."""
        return list(self._spans.get_finished_spans())

    def numbers(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """Return the points of each metric that is a number."""
        data = self._reader.get_metrics_data()
        found: dict[str, list[tuple[dict[str, Any], float]]] = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            points = metric.data.data_points
            found[metric.name] = [(dict(point.attributes), getattr(point, "value", None)) for point in points]
        return found


@pytest.fixture(autouse=True)
def _shut_down(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End the threads of a command's providers. They would retry during later tests, and draw random numbers there."""
    made: list[Any] = []

    def kept(make: Any) -> Any:
        return lambda *arguments: made.append(make(*arguments)) or made[-1]

    for name in ("tracer_provider", "meter_provider"):
        monkeypatch.setattr(opentelemetry_setup, name, kept(getattr(opentelemetry_setup, name)))
    before = set(threading.enumerate())
    yield
    for provider in made:
        provider.shutdown()
    for thread in set(threading.enumerate()) - before:
        thread.join(20)
        assert not thread.is_alive(), thread.name


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    made = Memory()

    def telemetry_of(root: Path, target: str) -> Telemetry:
        return Telemetry(root.name, target, [SpanObserver(made.tracers, made.meters)])

    monkeypatch.setattr("rewindow.app.open_project.telemetry_of", telemetry_of)
    yield made
    made.meters.shutdown()
    made.tracers.shutdown()


def test_a_run_is_a_span_with_a_child_for_each_step(bench: Bench, memory: Memory):
    bench.run("run", "counts", "--land")
    spans = memory.spans()
    (land, run) = (span for span in spans if span.parent is None)
    assert (land.name, run.name) == ("rewindow land", "rewindow run")
    steps = [span for span in spans if span.parent is not None and span.parent.span_id == run.context.span_id]
    names = [step.name for step in steps]
    assert names == ["recover", "plan", "execute", "execute sub-topology", "stage", "audit", "commit", *names[7:]]
    assert set(names[7:]) == {"publish"}
    assert all(run.start_time <= step.start_time <= step.end_time <= run.end_time for step in steps)
    execute = steps[3]
    assert execute.attributes["rewindow.step"] == "execute sub-topology 0"
    assert execute.attributes["rewindow.run"] == "main/3"
    assert execute.attributes["rewindow.records"] == 12
    tasks = [event.attributes for event in execute.events if event.name == "task"]
    assert sum(task["rewindow.records"] for task in tasks) == 12
    assert run.attributes["rewindow.job"] == "counts"
    assert run.attributes["rewindow.run"] == "main/3"
    assert tuple(run.attributes["rewindow.epochs"]) == (3, 3)
    assert run.attributes["rewindow.records"] == 12
    assert land.attributes["rewindow.feed"] == "activity"
    assert tuple(land.attributes["rewindow.landings"]) == (3,)


def test_runs_and_landings_are_counted(bench: Bench, memory: Memory):
    bench.rows("late", [{"user": "ann", "t": hour(0)[0]["t"], "got": hour(2)[0]["got"], "x": 1}])
    printed = json.loads(bench.run("run", "counts", "--land", "--json").out)
    found = memory.numbers()
    ((attributes, records),) = found["rewindow.records"]
    assert records == 13
    assert attributes == {
        "rewindow.job": "counts",
        "rewindow.branch": "main",
        "rewindow.project": "shop",
        "rewindow.target": "local",
        "rewindow.topic": "events",
    }
    assert found["rewindow.landed"][0][1] == 13
    assert found["rewindow.rows"][0][1] == printed["summary"]["rows"]["totals"]
    assert [(a["rewindow.kind"], a["rewindow.reason"], n) for a, n in found["rewindow.dropped"]] == [
        ("late", "window-closed", 1)
    ]
    assert found["rewindow.behind"][0][1] == 0
    assert {a["rewindow.command"] for a, _ in found["rewindow.duration"]} == {"land", "run"}


def test_a_branch_that_stops_early_is_behind(bench: Bench, memory: Memory):
    bench.run("land", "activity")
    bench.run("backfill", "counts", "--from", "1", "--to", "2", "--branch", "fix")
    behind = {attributes["rewindow.branch"]: value for attributes, value in memory.numbers()["rewindow.behind"]}
    assert behind == {"fix": 1}
    spans = {span.name: span for span in memory.spans() if span.name.startswith("rewindow ")}
    assert spans["rewindow run"].parent.span_id == spans["rewindow backfill"].context.span_id


def test_a_failure_is_the_status_of_its_span(bench: Bench, memory: Memory):
    bench.run("land", "activity")
    bench.code("def score(row):\n    return row.nothing\n")
    answer = bench.run("run", "counts")
    span = memory.spans()[-1]
    assert span.status.status_code.name == "ERROR"
    assert span.status.description in answer.err
    assert (span.attributes["rewindow.exit_code"], span.attributes["rewindow.error_code"]) == (
        answer.code,
        "node-failed",
    )
    assert {attributes["rewindow.outcome"] for attributes, _ in memory.numbers()["rewindow.duration"]} >= {"failed"}


def test_a_command_continues_the_trace_that_started_it(bench: Bench, memory: Memory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    bench.run("run", "counts")
    span = memory.spans()[-1]
    assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"


def test_the_console_exporter_writes_to_standard_error_so_that_json_stays_json(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "console")
    answer = bench.run("run", "counts", "--json")
    assert json.loads(answer.out)["run"] is None
    assert '"name": "rewindow run"' in answer.err
    assert '"name": "rewindow.duration"' in answer.err
    assert '"service.name": "rewindow"' in answer.err


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_an_unreachable_collector_gives_one_warning_and_no_other_exit_code(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, protocol: str
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setattr("rewindow.app.telemetry.announce.PATIENCE_S", 2.0)
    answer = bench.run("run", "counts")
    assert answer.code == 0
    assert answer.err.count("OpenTelemetry") == 1, answer.err
    assert "Traceback" not in answer.err


def test_an_unknown_exporter_gives_one_warning(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    answer = bench.run("run", "counts", "--land")
    assert answer.code == 0
    assert answer.err.count("there is no exporter 'zipkin'") == 1


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4317"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, True),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c",
                "OTEL_TRACES_EXPORTER": "none",
                "OTEL_METRICS_EXPORTER": "none",
            },
            False,
        ),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_SERVICE_NAME": "shop"}, False),
    ],
)
def test_opentelemetry_is_off_unless_it_is_configured(environ: dict[str, str], expected: object):
    assert has_opentelemetry(environ) is expected


@pytest.mark.parametrize(
    ("environ", "traces", "meters"),
    [
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, ["console", "otlp_proto_grpc"], []),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, ["otlp_proto_grpc"], []),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
            ["otlp_proto_http"],
            ["otlp_proto_http"],
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_METRICS_EXPORTER": "none"}, ["otlp_proto_grpc"], []),
    ],
)
def test_exporters_are_chosen_as_the_sdk_does(environ: dict[str, str], traces: list[str], meters: list[str]):
    assert exporter_names("TRACES", environ) == traces
    assert exporter_names("METRICS", environ) == meters


def test_nothing_is_imported_unless_it_is_configured(bench: Bench):
    import subprocess
    import sys

    code = (
        "import sys\nfrom rewindow.app.cli.entry import run_command\n"
        f"code = run_command(['show', 'counts', '--project', {str(bench.root)!r}])\n"
        "names = [n for n in sys.modules if n.split('.')[0] in ('openlineage', 'opentelemetry', 'requests')]\n"
        "print(code, names)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


def test_the_guide_names_every_metric_with_its_instrument():
    from rewindow.app.telemetry.spans_and_metrics import METRICS
    from tests.telemetry.consumer import ROOT

    page = (ROOT / "docs/guides/monitoring.md").read_text(encoding="utf-8")
    rows = {
        line.split("|")[1].strip(): line.split("|")[2].strip()
        for line in page.splitlines()
        if line.startswith("| `rewindow.")
    }
    assert rows == {f"`rewindow.{name}`": metric.instrument for name, metric in METRICS.items()}
