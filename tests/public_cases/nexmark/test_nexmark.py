"""The queries of Nexmark over events that others publish: rewindow's rows are the published ones.

Each query is a module of this folder with

* build_topology: the job, with RisingWave's form of the query; feldera: the topology of Feldera's form, if it is another
* TABLE: whether the rows are a table, of which the last row of each key is compared, without deletions. Otherwise all rows are
* FINALS: whether a second output has the final results, which are the same rows once the job has ended
* FELDERA_MOVED_MS: by how much Feldera's events are moved in time, if they are

RisingWave publishes the rows at the end, Feldera the changes of each step. Columns that a publication does not name are not compared.
"""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any

import pytest

from rewindow import Project, Record
from rewindow.testing import TopologyTestDriver
from tests.public_cases.case_project import land, landings_of, project_of
from tests.public_cases.nexmark.auction_events import EVENTS, FOLDER, LOGS, TIMES, at, published

MODULES = {path.stem.split("_")[0]: path.stem for path in FOLDER.glob("q*_*.py")}
QUERIES = sorted(MODULES, key=lambda query: int(query[1:]))
TIME_COLUMNS = {*TIMES, "bid_date_time", "auction_date_time", "starttime"}
Bag = Counter[tuple[Any, ...]]


def module_of(query: str) -> Any:
    return importlib.import_module(f"tests.public_cases.nexmark.{MODULES[query]}")


def outputs_of(query: str) -> list[str]:
    return [query, f"{query}-finals"] if hasattr(module_of(query), "FINALS") else [query]


def nearest(value: Any) -> Any:
    """Return a number as the nearest double: decimals are published with all their digits."""
    return float(value) if isinstance(value, int | float | Decimal) else value


def bag_of(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> Bag:
    return Counter(tuple(nearest(row[column]) for column in columns) for row in rows)


def changed(before: Bag, lines: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> Bag:
    """Return a bag after a published change, whose rows have a weight."""
    after = before.copy()
    for line in lines:
        (row,) = bag_of([row_of(line)], columns)
        after[row] += line["weight"]
    return +after


def row_of(line: Mapping[str, Any]) -> dict[str, Any]:
    return {column: at(value) if column in TIME_COLUMNS else value for column, value in line.items()}


@pytest.fixture(scope="module", params=["whole", "cut"])
def landed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, int]:
    """Return a project with all queries, and the number of its landings."""
    jobs = {
        query: {"topology": f"{module_of(query).__name__}:build_topology", "outputs": outputs_of(query)}
        for query in QUERIES
    }
    project = project_of(tmp_path_factory.mktemp("nexmark"), LOGS, jobs, partitions=2)
    landings = landings_of({topic: published("risingwave", topic) for topic in EVENTS}, cut=request.param == "cut")
    for number, landing in enumerate(landings):
        land(project, number, landing)
    return Project.load(project.root), len(landings)


@pytest.mark.parametrize("query", QUERIES)
def test_the_events_of_risingwave_give_its_rows(query: str, landed: tuple[Project, int]) -> None:
    (project, landings), module = landed, module_of(query)
    for number in range(1, landings + 1):
        project.run(query, through=number)
    expected = [row_of(json.loads(line)) for line in published("risingwave", query).splitlines()]
    output = project.output(f"rows.{query}")
    rows = output.current() if hasattr(module, "TABLE") else output.to_arrow()
    assert bag_of(rows.to_pylist(), expected[0]) == bag_of(expected, expected[0])
    if hasattr(module, "FINALS"):
        project.run(query, final=True)
        finals = project.output(f"rows.{query}-finals").to_arrow()
        assert bag_of(finals.to_pylist(), expected[0]) == bag_of(expected, expected[0])


def cases_of(query: str) -> list[Any]:
    path = FOLDER / f"feldera/{query}.jsonl"
    steps = map(json.loads, path.read_text(encoding="utf-8").splitlines() if path.exists() else [])
    return [
        pytest.param(query, list(case), id=f"{query}-{number}")
        for number, case in groupby(steps, lambda step: step["case"])
    ]


@pytest.mark.parametrize("mode", ["whole", "cut"])
@pytest.mark.parametrize(("query", "steps"), [case for query in QUERIES for case in cases_of(query)])
def test_each_step_of_feldera_changes_the_published_rows(query: str, steps: list[Any], mode: str) -> None:
    module = module_of(query)
    driver = TopologyTestDriver(getattr(module, "feldera", module.build_topology), partitions=2)
    moved_ms = getattr(module, "FELDERA_MOVED_MS", 0)
    columns = [column for step in steps for row in step["change"][:1] for column in row if column != "weight"]
    columns = list(dict.fromkeys(columns))
    sent: list[Record] = []
    before = Bag()
    for step in steps:
        driver.pipe_all(events_of(step["records"], driver.inputs, moved_ms))
        if mode == "cut":
            driver.cut()
        sent += driver.read(query)
        after = bag_of(rows_of(sent, is_table=hasattr(module, "TABLE")), columns)
        assert after == changed(before, step["change"], columns)
        before = after
    if hasattr(module, "FINALS"):
        driver.finish()
        assert bag_of(rows_of(driver.read(f"{query}-finals"), is_table=False), columns) == before


@pytest.mark.parametrize(("query", "steps"), cases_of("q5"))
def test_feldera_has_windows_that_begin_before_1970(query: str, steps: list[Any]) -> None:
    driver = TopologyTestDriver(module_of(query).build_topology, partitions=2)
    published_rows, bids = Bag(), []
    for step in steps:
        driver.pipe_all(events_of(step["records"], driver.inputs))
        bids += [bid for _, _, bid, _ in events_of(step["records"], driver.inputs)]
        published_rows = changed(published_rows, step["change"], ["auction", "num"])
    missing = Bag()
    for start_ms in range(-8_000, 0, 2_000):
        counts = Counter(bid.auction for bid in bids if start_ms <= bid.date_time < start_ms + 10_000)
        missing.update((auction, count) for auction, count in counts.items() if count == max(counts.values()))
    rows = bag_of(rows_of(driver.read(query), is_table=True), ["auction", "num"])
    assert missing.total() > 0
    assert rows + missing == published_rows


def events_of(
    records: Mapping[str, list[list[Any]]], topics: Iterable[str], moved_ms: int = 0
) -> Iterator[tuple[str, Any, Any, int]]:
    for topic in [topic for topic in records if topic in topics]:
        for values in records[topic]:
            named = dict(zip(EVENTS[topic]._fields, values, strict=True))
            event = EVENTS[topic](
                **{name: at(value) + moved_ms if name in TIMES else value for name, value in named.items()}
            )
            yield topic, event[0], event, event.date_time


def rows_of(records: Iterable[Record], *, is_table: bool) -> list[dict[str, Any]]:
    """Return the columns of keys and values: of all records, or of the last one of each key."""
    if is_table:
        records = {record.key: record for record in records}.values()
    return [columns_of(record.key) | columns_of(record.value) for record in records if record.value is not None]


def columns_of(part: Any) -> dict[str, Any]:
    return dict(part._asdict()) if hasattr(part, "_asdict") else {}
