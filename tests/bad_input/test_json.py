"""`--json` of every command: one object, keys in snake case, and nulls for what is unknown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from rewindow.app.cli.entry import app
from tests.bad_input.scene import Bench, copy_of, hour
from tests.docs.commands import commands as commands_below

STEPS = (
    "land activity",
    "ls",
    "status",
    "plan counts",
    "run counts",
    "run counts",
    "show counts --hashes",
    "explain counts",
    "explain counts --svg {root}/counts.svg",
    "check counts",
    "head counts",
    "head alerts.totals --last -n 1",
    "why alerts.totals ann",
    "why counts zoe --missing",
    "report counts --run 2 --diff main",
    "report counts --since main/1 --out {root}/report.html",
    "state list counts",
    "state show counts sums",
    "state diff counts sums 1 2",
    "state export counts sums --to {root}/sums.csv",
    "branch list counts",
    "backfill counts --from 2 --to 3 --branch fix",
    "diff counts main fix",
    "branch list counts",
    "promote counts fix",
    "backfill counts --from 2 --to 3 --branch other",
    "branch drop counts other",
    "verify counts",
    "republish counts",
    "resume counts",
    "publish counts",
    "publish counts --accept",
    "rewind counts --to 1",
    "gc activity",
    "upgrade --dry-run",
    "reset counts --yes",
    "show counts",
    "plan nobody",
)
BY_NAME = (
    *[
        "consumed",
        "targets",
        "tables",
        "records",
        "rows",
        "dropped",
        "late",
        "skipped",
        "semantics",
        "lagging",
        "drift",
    ],
    *["entries", "before", "after", "key", "samples"],
)
"""Parts whose keys are names of topics, tables, reasons or columns."""
NAMED = ("verify", "diff", "gc")
"""Commands whose result is an object by name."""
SNAKE = re.compile(r"_?[a-z][a-z0-9]*(_[a-z0-9]+)*")


def problems(found: Any, path: str) -> Iterator[str]:
    """Yield the keys that are not in snake case, and the values that stand for null."""
    parent = path.rpartition(".")[2]
    if isinstance(found, dict):
        for name, value in found.items():
            if parent not in BY_NAME and not SNAKE.fullmatch(name):
                yield f"{path}.{name}"
            yield from problems(value, f"{path}.{name}")
    elif isinstance(found, list):
        for value in found:
            yield from problems(value, path)
    elif found in ("", "-") and parent not in ("node", "reason", "unit"):
        yield f"{path} is {found!r}"
    elif found == -1 and path.endswith("_ms"):
        yield f"{path} is -1"


def test_every_command_gives_one_object_in_snake_case(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.rows("h4", hour(4))
    wrong, used = [], set[str]()
    for step in STEPS:
        words = step.format(root=tmp_path).split()
        answer = bench.run(*words, "--json")
        assert answer.code in {0, 1, 78} if step == "plan nobody" else answer.code in {0, 1}, (step, answer)
        found = json.loads(answer.out, parse_constant=lambda name: pytest.fail(f"{step}: {name} is not JSON"))  # noqa: B023
        assert isinstance(found, dict), step
        parts = found.values() if words[0] in NAMED and answer.code in {0, 1} else [found]
        wrong += [f"{step}: {one}" for part in parts for one in problems(part, "")]
        used.update(" ".join(words[:count]) for count in (1, 2))
    assert not wrong, "\n".join(dict.fromkeys(wrong))
    missing = set(commands()) - used
    assert missing == {
        "setup",
        "databricks submit",
        "init",
        "test",
        "schema",
    }  # the last three: tests/end_to_end/test_new_project.py, tests/config/test_schema.py


def commands() -> Iterator[str]:
    """Yield the names of all commands, those of groups with their group."""
    for path, _ in commands_below(get_command(app), ()):
        yield " ".join(path)


def test_no_command_shows_the_row_of_the_ledger_as_the_id_of_a_run(template: Bench) -> None:
    shown = template.json("show counts")
    assert [run["run"] for run in shown["runs"]] == ["main/1", "main/2"]
    assert not any("id" in run for run in shown["runs"])
    (table,) = template.json("head counts")["tables"]
    assert {row["_run"] for row in table["rows"]} == {"main/1", "main/2"}
