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
from pathlib import Path

import pytest

from rewindow.control.plan.spec import RunRequest
from rewindow.tables.delta.table_rows import read_rows
from tests.public_cases.case_project import land, landings_of, project_of, rows_of

FOLDER = Path(__file__).parent
TUTORIALS = sorted(
    path.stem
    for path in FOLDER.glob("*.py")
    if path.stem not in {"__init__", "case_project", "times", "test_tutorials"}
)


@pytest.mark.parametrize("mode", ["whole", "cut"])
@pytest.mark.parametrize("name", TUTORIALS)
def test_the_published_input_gives_the_published_rows(name: str, mode: str, tmp_path: Path) -> None:
    tutorial = importlib.import_module(f"tests.public_cases.{name}")
    job = {
        "topology": f"{tutorial.__name__}:build_topology",
        "outputs": list(tutorial.EXPECTED),
        "semantics": getattr(tutorial, "SEMANTICS", {}),
    }
    project = project_of(tmp_path, tutorial.LOGS, {"job": job})
    for number, landing in enumerate(landings_of(tutorial.INPUT, cut=mode == "cut")):
        land(project, number, landing)
        project.run("job", RunRequest())
    for topic, text in tutorial.EXPECTED.items():
        expected = [json.loads(line) for line in text.strip().splitlines()]
        rows = rows_of(project, topic)
        if last_of := getattr(tutorial, "LAST_OF", None):
            rows = sorted({row[last_of]: row for row in rows}.values(), key=lambda row: row[last_of])
            expected.sort(key=lambda row: row[last_of])
        assert [{column: row[column] for column in expected[0]} for row in rows] == expected
    if letters := getattr(tutorial, "QUARANTINED", None):
        rows = read_rows(f"{project.warehouse}/rewindow/quarantine").sort_by("offset").to_pylist()
        assert [json.loads(row["record"]) for row in rows] == [json.loads(line) for line in letters.split("\n") if line]
