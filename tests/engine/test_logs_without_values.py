"""A log may have a key and no other column: who clicked, and when. Every job reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rewindow import JoinWindows, KStream, StreamsBuilder, TimeWindows, Topology, until_window_closes
from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.tables.delta.table_rows import read_rows

FEED = """\
feed: clicks
partitions: 1
landing: {max_ahead: none}
logs:
  clicks: {source: {path: clicks.csv, format: csv}, key: user, timestamp: at, units: {at: ms}}
  visits: {source: {path: visits.csv, format: csv}, key: user, timestamp: at, units: {at: ms}}
"""
JOB = "job: job\ntopology: tests.engine.test_logs_without_values:{name}\nfeed: clicks\noutputs: {{out: {{table: out.rows}}}}\n"
CLICKS, VISITS = (("a", 1), ("b", 2), ("a", 3)), (("a", 2), ("b", 5))


WINDOWS = TimeWindows.of("10ms", grace="0s")


def one(*_values: object) -> int:
    return 1


def sending(graph: Callable[[StreamsBuilder], KStream]) -> Callable[[], Topology]:
    """Return a function that builds a topology with the output of a graph."""

    def build() -> Topology:
        builder = StreamsBuilder()
        graph(builder).to("out")
        return builder.build()

    return build


def windowed(stream: KStream) -> KStream:
    """Count in windows, with final results."""
    return stream.group_by_key().windowed_by(WINDOWS).count(store="n").suppress(until_window_closes()).to_stream()


def joined_streams(builder: StreamsBuilder) -> KStream:
    """Join clicks with visits at the same time, or a millisecond before or after."""
    windows = JoinWindows.of("1ms", grace="0s")
    return builder.stream("clicks").left_join(builder.stream("visits"), one, windows, name="j", value=int)


def joined_tables(builder: StreamsBuilder) -> KStream:
    """Join the last click with the last visit."""
    return builder.table("clicks", store="t").join(builder.table("visits", store="u"), one, value=int).to_stream()


count = sending(lambda builder: builder.stream("clicks").group_by_key().count(store="n").to_stream())
window = sending(lambda builder: windowed(builder.stream("clicks")))
copy = sending(lambda builder: builder.stream("clicks"))
table = sending(lambda builder: builder.table("clicks", store="t").to_stream())
repartition = sending(lambda builder: builder.stream("clicks").repartition(name="again"))
function = sending(lambda builder: builder.stream("clicks").map_values(one, value=int))
function_and_window = sending(lambda builder: windowed(builder.stream("clicks").map_values(one, value=int)))
table_join = sending(lambda builder: builder.stream("clicks").join(builder.table("visits", store="t"), one, value=int))
stream_join = sending(joined_streams)
join_of_tables = sending(joined_tables)


def written(root: Path, name: str) -> OpenProject:
    """Write a project with both logs and a job."""
    for path, text in (
        ("feeds/clicks", FEED),
        ("jobs/job", JOB.format(name=name)),
        ("targets/local", "target: local\nwarehouse: w\n"),
    ):
        (root / "conf" / path).parent.mkdir(parents=True)
        (root / "conf" / f"{path}.yaml").write_text(text, encoding="utf-8")
    for path, rows in (("clicks", CLICKS), ("visits", VISITS)):
        lines = "".join(f"{user},{at}\n" for user, at in rows)
        (root / f"{path}.csv").write_text(f"user,at\n{lines}", encoding="utf-8")
    return OpenProject.open(root)


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("count", [1, 2, 3]),
        ("window", [3, 2]),
        ("copy", [1, 2, 3]),
        ("table", [1, 2, 3]),
        ("repartition", [1, 2, 3]),
        ("function", [1, 2, 3]),
        ("function_and_window", [3, 2]),
        ("table_join", [3]),
        ("stream_join", [2, 3, 2]),
        ("join_of_tables", [2, 3, 5]),
    ],
)
def test_a_job_reads_a_log_without_values(name: str, times: list[int], tmp_path: Path) -> None:
    project = written(tmp_path, name)
    project.land("clicks")
    project.run("job", RunRequest(final=True))
    assert read_rows(f"{tmp_path}/w/out/rows")["_timestamp"].to_pylist() == times
