"""What a small run asks a bucket for does not depend on the files of earlier runs; others look for those (ADR-135)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow.engine.worker.changelog_reader import RowGroupFilter
from rewindow.storage.locations import options_of
from rewindow.tables.delta import handle
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import Answer, hour, without_spark
from tests.object_store.scene import THERE, done, make
from tests.object_store.server import client, requests, s3_server

pytestmark = pytest.mark.slow

MOST, OF_CHECKPOINT = 110, 6
"""About 95, and five for each table that writes a checkpoint. How many do depends on the name of the warehouse."""

EXPLAINING = {
    "ls": 31,
    "status": 54,
    "plan counts": 31,
    "report counts --json": 46,
    "why counts ann --missing": 49,
    "why counts ann": 37,
}
"""What each of these commands asked for before `control.health` computed what they show: tables that it opened, and their files.

`why` of a row asks for three more, because it checks that the ledger has all publications of the branch's tables.
The commits and checkpoints of a table are not counted, because a checkpoint may be written in any run.
"""


class There:
    """A project whose warehouse is in the bucket of a server of its own."""

    def __init__(self, root: Path, settings: dict[str, str]) -> None:
        self.bench, self.warehouse = make(root / "project", settings)
        self._root, self._system, self._hours = root, client(settings), 0

    def call(self, *words: str) -> tuple[Answer, list[tuple[str, str]]]:
        """Call a command as a new process would. Return its answer and its requests."""
        handle.cached.clear()
        RowGroupFilter._largest.clear()
        before = len(requests(self._root))
        return self.bench.run(*words, *THERE), requests(self._root)[before:]

    def lands(self) -> None:
        self.bench.rows(f"h{self._hours}", hour(self._hours))
        self._hours += 1
        done(self.call("land", "activity", "--json")[0])

    def lose(self, target: str, number: int) -> int:
        """Delete the file that one of the runs has added to a table. Return how many there were."""
        table = DeltaTables(self.warehouse).state("counts").branch("main").tables[target]
        path = table_path(self.warehouse, table.path)
        files = files_of(DeltaTable(path, storage_options=options_of(path)))
        self._system.delete_file(f"{path.removeprefix('s3://')}/{files[number]}")
        return len(files)

    def found(self) -> list[dict[str, str]]:
        """Return what `status` finds of the job."""
        (job,) = json.loads(self.call("status", "--json")[0].out)["jobs"]
        return list(job["findings"])


def files_of(table: DeltaTable) -> list[str]:
    """Return a table's files in the order of their runs."""
    actions = table.get_add_actions(flatten=True)
    found = zip(actions["min._run"].to_pylist(), actions["path"].to_pylist(), strict=True)
    return [path for _, path in sorted(found)]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    """Return a project with three runs. Each test continues it, and repairs what it harms."""
    folder = tmp_path_factory.mktemp("requests")
    with s3_server(folder) as settings, without_spark():
        there = There(folder, settings)
        for _ in range(3):
            there.lands()
            done(there.call("run", "counts", "--json")[0])
        yield there


def test_commands_that_explain_what_waits_ask_for_no_more_than_before_and_start_no_spark(there: There) -> None:
    there.lands()
    asked_for = {}
    for command in EXPLAINING:
        answer, made = there.call(*command.split())
        assert answer.code == 0, (command, answer)
        asked_for[command] = sum("_delta_log" not in path or path.endswith("_last_checkpoint") for _, path in made)
    assert {command: count for command, count in asked_for.items() if count > EXPLAINING[command]} == {}


def test_state_that_is_gone_is_told_by_plan_and_status_and_the_run_ends_with_74(there: There) -> None:
    there.lose("changelog/sums", 0)
    there.lands()
    for words in (("plan", "counts"), ("run", "counts"), ("plan", "counts")):
        answer, _ = there.call(*words)
        assert answer.code == 74, (words, answer)
        assert "rewindow republish" in answer.err
    assert there.found()[0]["about"] == "refused"
    done(there.call("republish", "counts", "--json")[0])
    done(there.call("run", "counts", "--json")[0])
    assert there.found() == []


def test_a_small_run_lists_no_folder_of_files_and_others_find_an_old_one_that_is_gone(there: There) -> None:
    files = there.lose("output/totals", 0)
    there.lands()
    answer, made = there.call("run", "counts")
    assert answer.code == 0, answer.err
    lists = [path for _, path in made if "list-type" in path]
    assert lists
    assert all("_delta_log" in path for path in lists), lists
    assert all("start-after" in path for path in lists), "a log is listed from its checkpoint on"
    checkpoints = sum(method == "PUT" and path.endswith(".checkpoint.parquet") for method, path in made)
    # A run that takes longer writes more heartbeats.
    assert sum("/heartbeats/" not in path for _, path in made) - OF_CHECKPOINT * checkpoints <= MOST
    (finding,) = there.found()
    assert (finding["level"], finding["about"], finding["code"]) == ("broken", "altered", "next-run-lacks-files")
    assert re.search(rf"alerts/totals\D+ 1 of {files + 1}\b", finding["message"]), finding
    for words in (("show", "counts"), ("verify", "counts"), ("rewind", "counts", "--to", "1")):
        answer, _ = there.call(*words)
        assert answer.code == 74, (words, answer)
        assert "rewindow republish counts" in answer.err
    done(there.call("republish", "counts", "--json")[0])
    assert there.found() == []
