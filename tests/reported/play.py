"""Play a case: land its files in this process, or send its records through a topology, and compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from rewindow import Windowed
from rewindow.app.open_project import OpenProject
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.testing import Epoch, LocalReplay, TopologyTestDriver
from tests.ingest.local_engine import log_rows
from tests.reported.report import Case, Landing, Stream
from tests.text.expected import alike
from tests.text.odd_case import utc


def play(case: Case, folder: Path) -> None:
    """Check a case."""
    match case:
        case Landing():
            _play_landing(case, folder)
        case Stream():
            _play_stream(case)
        case _:
            case.check(folder)


def _play_landing(case: Landing, root: Path) -> None:
    (root / "raw").mkdir()
    for name, values in (("feeds/activity", feed_of(case)), ("targets/local", {"target": "local", "warehouse": "w"})):
        (root / "conf" / name).parent.mkdir(parents=True)
        (root / "conf" / f"{name}.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    warned, quarantined = [], 0
    for number, files in enumerate(case.calls, start=1):
        write(files, root)
        until_ms = utc(case.until[number - 1]) if case.until else None
        if case.refused is not None and number == len(case.calls):
            with case.refused:
                OpenProject.open(root).land("activity", until_ms=until_ms)
            break
        report = OpenProject.open(root).land("activity", until_ms=until_ms)
        # The times of the cases are small numbers.
        warned += [warning.code for warning in report.warnings if warning.code != "times-before-1980"]
        quarantined += report.quarantined
    rows = [] if case.refused is not None and len(case.calls) == 1 else log_rows(DeltaFeedTables(f"{root}/w"))
    expected = [tuple(map(_as_landed, row)) for row in case.rows]
    assert alike([tuple(row[name] for name in case.columns) for row in rows], expected), rows
    assert (sorted(warned), quarantined) == (sorted(case.warned), case.quarantined)


def _as_landed(value: Any) -> Any:
    """Return how a log stores a value: objects and lists as JSON text."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return value


def feed_of(case: Landing) -> dict[str, Any]:
    """Return the values of the feed's file."""
    source = {"path": "raw", "format": case.format, **case.source}
    source = {name: value for name, value in source.items() if value is not None}
    log = {"source": source, "key": "n", "timestamp": "n", "units": {"n": "ms"}, **case.log}
    return {
        "feed": "activity",
        "partitions": 1,
        "logs": {"events": {name: value for name, value in log.items() if value is not None}},
        **case.feed,
        "landing": {"max_ahead": "none", **case.feed.get("landing", {})},
    }


def write(files: Any, root: Path) -> None:
    """Write the files of a call."""
    if callable(files):
        files(root)
        return
    for name, content in files.items():
        path = root / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)


def _play_stream(case: Stream) -> None:
    sent, dropped = _driven(case, is_cut=False)
    assert (sent, dropped) == (list(case.sent), case.dropped)
    assert _driven(case, is_cut=True)[0] == sent, "cut into runs"
    replay = LocalReplay(case.topology())
    for record in case.records:
        replay.run([Epoch((record,))])
    replayed = [(one.topic, _key(one.record.key), one.record.value, one.record.timestamp) for one in replay.sent]
    assert sorted(replayed, key=repr) == sorted(sent, key=repr), "replayed, one landing for each record"


def _driven(case: Stream, *, is_cut: bool) -> tuple[list[tuple[str, Any, Any, int]], tuple[str, ...]]:
    driver = TopologyTestDriver(case.topology())
    for record in case.records:
        driver.pipe(*record)
        if is_cut:
            driver.cut()
    sent = [(topic, _key(one.key), one.value, one.timestamp) for topic, one in driver.read_all()]
    return sent, tuple(one.reason for one in driver.dropped)


def _key(key: Any) -> Any:
    return (key.key, key.window.start_ms, key.window.end_ms) if isinstance(key, Windowed) else key
