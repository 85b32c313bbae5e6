"""Reports about intervals, time zones, times before 1970, bytes of files, and configuration."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rewindow.config.load import load_feed
from rewindow.testing import TopologyTestDriver
from tests.refusals import containing, refused
from tests.reported.csv_files import in_header
from tests.reported.report import Check, Landing, Report, csv, github, jira, json
from tests.reported.streams import counted

NOTHING: Mapping[str, str] = {}


def intervals(name: str, zone: str, every: str, landings: list[list[str]], *, until: str) -> tuple[Landing, ...]:
    """Return cases of rows that arrive at these times (UTC), in groups that are landed together: in one call, and in many."""
    times = [(number, time) for number, group in enumerate(landings, start=1) for time in group]
    lines = "".join(f"{row},{time}Z\n" for row, (_, time) in enumerate(times, start=1))
    settings: dict[str, Any] = {
        "columns": ("n", "landing"),
        "rows": tuple((row, number) for row, (number, _) in enumerate(times, start=1)),
        "log": {"timestamp": "got", "arrived_at": "got", "units": None},
        "feed": {"zone": zone, "landing": {"every": every}},
    }
    first, end = datetime.fromisoformat(times[0][1]), datetime.fromisoformat(until)
    steps = [(first + (end - first) * n / 12).replace(microsecond=0).isoformat() for n in range(13)]
    files = {"a.csv": f"n,got\n{lines}"}
    return (
        Landing(f"{name}, in one call", "csv", (files,), until=(until,), **settings),
        Landing(f"{name}, in many calls", "csv", (files, *[NOTHING] * 12), until=tuple(steps), **settings),
    )


def configured(name: str, text: str, code: str | None = None, **facts: object) -> Check:
    """Check a feed's file: that it is refused with a code, or that it has these values."""

    def check(root: Path) -> None:
        path = root / "conf" / "feeds" / "f.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
        if code is None:
            (log,) = load_feed(root, "f").logs.values()
            assert {fact: getattr(log, fact) for fact in facts} == facts
            return
        with refused(code, **facts):
            load_feed(root, "f")

    return Check(name, check)


def refused_by_driver(root: Path) -> None:
    """Pipe a record with a time before 1970."""
    del root
    with refused("record-timestamp-negative"):
        TopologyTestDriver(counted()()).pipe("in", "A", 1, -5)


FEED = """\
feed: f
partitions: {partitions}
logs:
  {topic}:
    source: {{path: raw, format: csv}}
    key: {key}
    timestamp: t
"""
BOM = b"\xef\xbb\xbf"

REPORTS: tuple[Report, ...] = (
    github(
        "pola-rs/polars",
        15966,
        "Windows of days began at wrong hours when clocks had changed just before.",
        "An interval of a day is the local day, with 23 or 25 hours.",
        *intervals(
            "clocks go forward",
            "Europe/Paris",
            "1d",
            [["2023-03-25T22:59:59"], ["2023-03-25T23:00:00", "2023-03-26T21:59:59"], ["2023-03-26T22:00:00"]],
            until="2023-03-28T00:00:00",
        ),
        *intervals(
            "clocks go back",
            "Europe/Paris",
            "1d",
            [["2023-10-28T21:59:59"], ["2023-10-28T22:00:00", "2023-10-29T22:59:59"], ["2023-10-29T23:00:00"]],
            until="2023-10-31T00:00:00",
        ),
    ),
    github(
        "apache/airflow",
        30088,
        "On the night when clocks go forward, the next interval seemed to be earlier, and the scheduler stopped.",
        "That interval is an hour shorter.",
        *intervals(
            "four hours",
            "America/Los_Angeles",
            "4h",
            [["2023-03-12T07:59:59"], ["2023-03-12T08:00:00", "2023-03-12T10:59:59"], ["2023-03-12T11:00:00"]],
            until="2023-03-13T00:00:00",
        ),
        *intervals(
            "two hours, of which the local begin does not exist",
            "America/New_York",
            "2h",
            [["2024-03-10T06:59:59"], ["2024-03-10T07:00:00", "2024-03-10T07:59:59"], ["2024-03-10T08:00:00"]],
            until="2024-03-10T14:00:00",
        ),
    ),
    github(
        "pola-rs/polars",
        7434,
        "Windows of an hour failed in the night when an hour occurs twice.",
        "The rows of both hours are landed once.",
        *intervals(
            "an hour twice",
            "US/Central",
            "1h",
            [["2021-11-07T05:30:00"], ["2021-11-07T06:30:00"], ["2021-11-07T07:30:00"], ["2021-11-07T08:30:00"]],
            until="2021-11-07T12:00:00",
        ),
        *intervals(
            "half an hour twice",
            "Australia/Lord_Howe",
            "1d",
            [["2024-04-05T13:30:00"], ["2024-04-06T13:00:00", "2024-04-07T13:29:59"], ["2024-04-07T13:30:00"]],
            until="2024-04-09T00:00:00",
        ),
    ),
    github(
        "SQLMesh/sqlmesh",
        5739,
        "Loaded day by day, rows at exactly midnight were lost.",
        "A day includes its beginning and excludes its end; day by day is the same as at once.",
        *intervals(
            "midnight",
            "UTC",
            "1d",
            [["2026-01-04T00:00:00", "2026-01-04T23:59:59.999"], ["2026-01-05T00:00:00"], ["2026-01-06T00:00:00"]],
            until="2026-01-07T00:00:00",
        ),
        *intervals(
            "local midnight, west of Greenwich",
            "America/Sao_Paulo",
            "1d",
            [["2026-01-04T03:00:00", "2026-01-05T02:59:59.999"], ["2026-01-05T03:00:00"]],
            until="2026-01-06T03:00:00",
        ),
    ),
    jira(
        "FLINK-26334",
        "Times before 1970 were counted in the window after theirs.",
        "They are refused, as in Kafka, or go to the quarantine.",
        csv("landed", "n,x\n-5,a\n5,b\n", refused=refused("rows-without-valid-time", rows=containing("a.csv, line 2"))),
        csv("in quarantine", "n,x\n-5,a\n5,b\n", (5, "b"), quarantined=1, log={"invalid_timestamp": "skip"}),
        csv(
            "as a time",
            "n,t\n1,1969-12-31T23:59:59.999Z\n",
            refused=refused("rows-without-valid-time", rows=containing("a.csv, line 2")),
            log={"timestamp": "t", "units": None},
        ),
        Check("in a driver", refused_by_driver),
    ),
    github(
        "trinodb/trino",
        18223,
        "Of a file of several gzip members, only the first had rows.",
        "All members are read; bytes behind them are refused.",
        csv("two members", gzip.compress(b"n,x\n1,a\n") + gzip.compress(b"2,b\n"), (1, "a"), (2, "b"), file="a.csv.gz"),
        csv(
            "cut within a line",
            gzip.compress(b"n,x\n1,a\n2,") + gzip.compress(b"b\n"),
            (1, "a"),
            (2, "b"),
            file="a.csv.gz",
        ),
        json(
            "of JSON, one empty",
            gzip.compress(b'{"n": 1}\n') + gzip.compress(b"") + gzip.compress(b'{"n": 2}\n'),
            (1,),
            (2,),
            columns=("n",),
            file="a.json.gz",
        ),
        csv(
            "the second cut off",
            gzip.compress(b"n,x\n1,a\n") + gzip.compress(b"2,b\n" * 9)[:-9],
            refused=refused("file-not-decompressed"),
            file="a.csv.gz",
        ),
    ),
    github(
        "duckdb/duckdb",
        2908,
        "A byte order mark became part of the first column's name.",
        "It is no part of the file, with quotes or without, compressed or not.",
        csv("before a name", BOM + b"n,x\n1,a\n", (1, "a")),
        csv("before a name in quotes", BOM + b'"n","x"\n1,a\n', (1, "a")),
        csv("compressed", gzip.compress(BOM + b"n,x\n1,a\n"), (1, "a"), file="a.csv.gz"),
        csv("before an empty line", BOM + b"\nn,x\n1,a\n", (1, "a")),
        csv(
            "behind lines that are skipped", BOM + b"Report\nn,x\n1,a\n", (1, "a"), source={"options": {"skip_rows": 1}}
        ),
        json("before an object", BOM + b'{"n": 1, "x": "a"}\n', (1, "a")),
        csv("of UTF-16", "n,x\n1,ä\n".encode("utf-16"), (1, "ä"), source={"options": {"encoding": "UTF-16"}}),
        csv("in the second line it is text", b"n,x\n1," + BOM + b"a\n", (1, "\ufeffa")),
    ),
    github(
        "pandas-dev/pandas",
        9424,
        "Of two columns with one name, both had the values of the last.",
        "They are numbered by position, and `columns:` gives them names.",
        csv("in the header", "n,x,x\n1,a,b\n", (1, "a", "b"), columns=("n", "x1", "x2")),
        csv(
            "renamed",
            "n,x,X\n1,a,b\n",
            (1, "a", "b"),
            columns=("n", "first", "second"),
            log={"columns": {"first": "x1", "second": "X2"}},
        ),
        csv("a column that has such a name already", "n,x,x,x2\n1,a,b,c\n", refused=in_header(1)),
    ),
    github(
        "canonical/cloud-init",
        6127,
        "`no` in a YAML file was taken for false.",
        "Keys and texts are texts, whatever they look like.",
        configured("a topic", FEED.format(partitions=1, topic="no", key="k"), key="k"),
        configured("a key", FEED.format(partitions=1, topic="a", key="no"), "config-value-invalid", key="logs.a.key"),
        configured("a key in quotes", FEED.format(partitions=1, topic="a", key='"no"'), key="no"),
        configured(
            "a number with a zero",
            FEED.format(partitions="010", topic="a", key="k"),
            "config-type-wrong",
            key="partitions",
        ),
        configured(
            "a key twice",
            FEED.format(partitions=1, topic="a", key="k") + "    key: m\n",
            "config-key-duplicate",
            key="key",
        ),
    ),
)
