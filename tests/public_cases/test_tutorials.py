"""Public Kafka Streams tutorials as projects: the published input gives the published rows, in one run and in several.

Each tutorial is a module of this folder with

* SOURCE: the address of its input and of its rows
* INPUT: the published records of each topic as JSON lines, topics in the order in which they were produced; or a list of such
  dictionaries, if a topic got more records after another one
* LOGS: how each topic is landed, as under `logs` of a feed; `source` has only what is not the same for all
* EXPECTED: the published rows of each output as JSON lines, in their order; columns that they do not name are not compared
* LAST_OF: a column, if only the last row of each of its values is published, in any order
* QUARANTINED: the published dead letters as JSON lines, if there are any
* build_topology: the job
* SEMANTICS: the job's semantics, if they are not the default

`README.md` lists the tutorials, and those that have no meaning here.
"""

from __future__ import annotations

import importlib
import json
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.tables.delta.table_rows import read_rows

FOLDER = Path(__file__).parent
TUTORIALS = sorted(
    path.stem for path in FOLDER.glob("*.py") if path.stem not in {"__init__", "times", "test_tutorials"}
)


def project_of(tutorial: ModuleType, root: Path) -> OpenProject:
    """Write the project of a tutorial: its feed, its job, and no records yet."""
    logs = {
        topic: {"order": "file", **log, "source": {"format": "json", "path": f"data/{topic}", **log.get("source", {})}}
        for topic, log in tutorial.LOGS.items()
    }
    files = {
        "feeds/feed": {"feed": "feed", "partitions": 1, "logs": logs},
        "jobs/job": {
            "job": "job",
            "topology": f"{tutorial.__name__}:build_topology",
            "feed": "feed",
            "outputs": {topic: {"table": f"rows.{topic}"} for topic in tutorial.EXPECTED},
            "semantics": getattr(tutorial, "SEMANTICS", {}),
        },
        "targets/local": {"target": "local", "warehouse": "warehouse"},
    }
    for name, content in files.items():
        path = root / f"conf/{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    for topic in logs:
        (root / "data" / topic).mkdir(parents=True)
    return OpenProject.open(root)


def landings_of(tutorial: ModuleType, *, cut: bool) -> list[list[tuple[str, str]]]:
    """Divide the records, in the order of INPUT. The first landing has a record of each topic: a source without files is refused."""
    rounds = tutorial.INPUT if isinstance(tutorial.INPUT, list) else [tutorial.INPUT]
    records = [(topic, line) for texts in rounds for topic, text in texts.items() for line in text.strip().splitlines()]
    first = 1 + [topic for topic, _ in records].index(records[-1][0])
    bounds = [0, first, (first + len(records)) // 2, len(records)] if cut else [0, len(records)]
    return [records[low:high] for low, high in pairwise(bounds) if low < high]


@pytest.mark.parametrize("mode", ["whole", "cut"])
@pytest.mark.parametrize("name", TUTORIALS)
def test_the_published_input_gives_the_published_rows(name: str, mode: str, tmp_path: Path) -> None:
    tutorial = importlib.import_module(f"tests.public_cases.{name}")
    project = project_of(tutorial, tmp_path)
    for number, landing in enumerate(landings_of(tutorial, cut=mode == "cut")):
        for topic in dict(landing):
            lines = [line + "\n" for owner, line in landing if owner == topic]
            (tmp_path / "data" / topic / f"{number}.json").write_text("".join(lines), encoding="utf-8")
        project.land("feed")
        project.run("job", RunRequest())
    for topic, text in tutorial.EXPECTED.items():
        expected = [json.loads(line) for line in text.strip().splitlines()]
        rows = read_rows(f"{project.warehouse}/rows/{topic}").to_pylist()
        rows.sort(key=lambda row: (row["_epoch"], row["_partition"], row["_offset"]))
        if last_of := getattr(tutorial, "LAST_OF", None):
            rows = sorted({row[last_of]: row for row in rows}.values(), key=lambda row: row[last_of])
            expected.sort(key=lambda row: row[last_of])
        assert [{column: row[column] for column in expected[0]} for row in rows] == expected
    if letters := getattr(tutorial, "QUARANTINED", None):
        rows = read_rows(f"{project.warehouse}/rewindow/quarantine").sort_by("offset").to_pylist()
        assert [json.loads(row["record"]) for row in rows] == [json.loads(line) for line in letters.split("\n") if line]
