"""A catalog-managed Delta table is refused by name wherever its files would be read or written directly.

The logs are crafted as Delta's protocol describes them: the protocol names the feature, and the newest commit is staged in
`_delta_log/_staged_commits`, where only a catalog could tell that it counts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from rewindow.engine.worker.worker_errors import translate_text
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.open_table import open_table
from tests.bad_input.scene import FEED, T0, Bench
from tests.refusals import refused

OUTPUT, LOG, STORE = "alerts/totals", "logs/activity/events", "state/counts/sums"
JOURNAL, LANDINGS, METRICS, RUNS = (f"rewindow/{name}" for name in ("journal", "landings", "metrics", "runs"))

REFUSED = {
    OUTPUT: ("plan counts", "show counts", "why alerts.totals ann", "rewind counts --to main/1"),
    LOG: ("land activity", "verify counts", "gc activity"),
    STORE: ("run counts", "state list counts", "report counts"),
    JOURNAL: ("gc counts",),
    LANDINGS: ("land activity",),
    METRICS: ("republish counts",),
    RUNS: ("run counts", "state show counts sums", "backfill counts --from 1 --branch fix"),
}
"""By table: some of the commands that open it."""


def manage(table: Path, feature: str = "catalogManaged") -> None:
    """Turn a table into one that a catalog manages, with a newest commit that is staged and not published."""
    log = table / "_delta_log"
    last = max(int(commit.stem) for commit in log.glob("*.json"))
    features = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [feature, "vacuumProtocolCheck"],
        "writerFeatures": [feature, "vacuumProtocolCheck", "inCommitTimestamp"],
    }
    (log / f"{last + 1:020}.json").write_text(json.dumps({"protocol": features}) + "\n")
    staged = log / "_staged_commits" / f"{last + 2:020}.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    staged.parent.mkdir()
    staged.write_text(json.dumps({"commitInfo": {"operation": "WRITE", "txnId": "1"}}) + "\n")


def folder_of(bench: Bench, table: str) -> Path:
    found = bench.warehouse / table
    return next(found.iterdir()) if table == STORE else found


@pytest.mark.parametrize("table", REFUSED)
def test_each_command_that_opens_the_table_names_the_feature_and_changes_nothing(bench: Bench, table: str) -> None:
    path = folder_of(bench, table)
    manage(path)
    before = bench.files()
    for line in REFUSED[table]:
        bench.refuses(line, "table-managed-by-catalog", path=str(path), features="catalogManaged")
    assert {name: bench.files().get(name) for name in before} == before


def test_status_and_ls_name_the_feature(bench: Bench) -> None:
    manage(folder_of(bench, RUNS))
    (job,) = bench.json("ls")["jobs"]
    assert (job["status"], job["exit_code"]) == ("broken", 78)
    assert [one["code"] for one in bench.json("status")["jobs"][0]["findings"]] == ["next-call-refused"]


@pytest.mark.parametrize("offsets", ["", "partition: kp, offset: ko, "])
def test_a_source_table_is_refused(bench: Bench, offsets: str) -> None:
    source = bench.warehouse / "raw/clicks"
    row = {"user": "ann", "t": T0, "got": T0, "x": 1, "kp": 0, "ko": 0}
    write_deltalake(str(source), pa.Table.from_pylist([row]))
    arrival = "" if offsets else ", arrived_at: got"
    log = f"{{source: {{table: raw.clicks}}, {offsets}key: user, timestamp: t{arrival}}}"
    feed = FEED.replace("feed: activity", "feed: clicks").partition("logs:")[0]
    bench.write("conf/feeds/clicks.yaml", f"{feed}logs:\n  clicks: {log}\n")
    bench.done("land clicks")
    manage(source)
    for line in ("land clicks", "land clicks --new-generation"):
        bench.refuses(line, "table-managed-by-catalog", path=str(source))


def test_spark_says_the_same_of_a_path() -> None:
    said = (
        "[DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED] Path-based access is not allowed for Catalog-Managed table: "
        "/raw/clicks. Please access the table via its name and retry. SQLSTATE: KD00G"
    )
    assert translate_text(said).exit_code == 78


def test_a_checksum_of_a_commit_that_is_not_published_does_not_hide_it(tmp_path: Path) -> None:
    path = tmp_path / "table"
    create_table(str(path), pa.schema([("n", pa.int64())]))
    manage(path)
    (path / "_delta_log" / f"{2:020}.crc").write_text(
        '{"tableSizeBytes":0,"numFiles":0}'
    )  # delta-spark writes it at once
    with refused("table-managed-by-catalog"):
        open_table(str(path))


@pytest.mark.parametrize("feature", ["catalogManaged", "catalogOwned-preview"])
def test_a_handle_in_the_cache_does_not_hide_the_feature(tmp_path: Path, feature: str) -> None:
    schema = pa.schema([("n", pa.int64())])
    path = str(tmp_path / "table")
    create_table(path, schema)
    assert open_table(path) is not None
    manage(Path(path), feature)
    for use in (open_table, lambda table: create_table(table, schema)):
        with refused("table-managed-by-catalog"):
            use(path)


def test_its_predecessor_and_unknown_features_are_named_too(tmp_path: Path) -> None:
    for number, feature in enumerate(("coordinatedCommits-preview", "notInvented")):
        path = tmp_path / str(number)
        create_table(str(path), pa.schema([("n", pa.int64())]))
        manage(path, feature)
    with refused("table-managed-by-catalog", features="coordinatedCommits-preview"):
        open_table(str(tmp_path / "0"))
    with refused("table-feature-unknown", features="notInvented"):
        open_table(str(tmp_path / "1"))
