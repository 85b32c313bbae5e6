"""`why` of a job without windows and stores, or one that gives records other keys; and of keys that no row can have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bad_input.scene import FEED, T0, Bench, goes_on, project_of, topology
from tests.refusals import told

LARGE = ".filter(lambda key, row: row.x > 5)"
RENAMED = '.select_key(lambda key, row: "u-" + key, key=str, name="prefixed")'
COUNTED = '.flat_map_values(lambda row: [row, row, row], name="three").group_by_key().count(store="n").to_stream()'
JOINED = '.join(builder.global_table("names", store="rows"), lambda key, value: key, lambda one, other: other)'
USERS = "abcdefgh"


pytestmark = pytest.mark.usefixtures("in_process")


def replayed(root: Path, steps: str, users: pa.Array, *more: str) -> Bench:
    """Land and replay a record of each user; ``more`` logs of the feed have the same records."""
    (event_log,) = (line for line in FEED.splitlines() if "events:" in line)
    logs = [event_log.replace("events:", f"{name}:").replace("path: raw", f"path: {name}") for name in more]
    module = topology(f'builder.stream("events"){steps}.to("totals")')
    bench = project_of(root, "\n".join([FEED.rstrip("\n"), *logs, ""]), module, "totals")
    times = [T0 + n for n in range(len(users))]
    rows = {"user": users, "t": times, "got": times, "x": list(range(len(users)))}
    for folder in ("raw", *more):
        (root / folder).mkdir()
        pq.write_table(pa.table(rows), root / folder / "h0.parquet")
    goes_on(bench)
    return bench


def missing(bench: Bench, key: str) -> dict[str, Any]:
    return bench.said(f"why counts {key} --missing")


def test_a_filter_lets_a_record_go_for_good_and_one_that_no_run_took_is_named_beside_it(tmp_path: Path) -> None:
    bench = replayed(tmp_path, LARGE, pa.array(list(USERS)))
    found = missing(bench, "a")
    assert found["why"] == "let_go"
    told(found["reasons"], "records-let-go", records="1 record")
    bench.rows("h1", [{"user": "a", "t": T0 + 10, "got": T0 + 10, "x": 9}])
    bench.done("land activity")
    found = missing(bench, "a")
    assert found["why"] == "let_go"
    told(found["reasons"], "key-records-not-taken", records="1 record of the key", why="landed after the last run")


def test_a_key_that_the_job_makes_is_not_looked_for_in_the_logs(tmp_path: Path) -> None:
    bench = replayed(tmp_path, RENAMED + LARGE, pa.array(list(USERS)))
    found = missing(bench, "u-a")
    assert found["why"] == "waiting"
    told(found["reasons"], "key-not-looked-for", reason="The key is made by prefixed")
    found = bench.said("why counts u-h")
    told(found["notes"], "drops-only-in-quarantine", because="The key is made by prefixed")
    assert found["note_codes"] == ["drops-only-in-quarantine"]


def test_a_global_table_makes_no_key(tmp_path: Path) -> None:
    bench = replayed(tmp_path, JOINED, pa.array(list(USERS)), "names")
    told(bench.why("counts zoe"), "key-not-looked-for", reason="The job reads a global table")
    bench.rows("h1", [{"user": "a", "t": T0 + 10, "got": T0 + 10, "x": 9}])
    goes_on(bench)
    codes = bench.done("why counts a --json").values["note_codes"]
    assert codes == ["drops-only-in-quarantine", "global-records-read-by-key"]


@pytest.mark.parametrize(
    ("users", "keys"),
    [
        (pa.array([1, 2, 3], pa.decimal128(10, 2)), ("1.555", "NaN", "1e400")),
        (pa.array([1, 2, 3], pa.int64()), ("99999999999999999999",)),
        (pa.array(["a", "b"]), ("\udcff",)),
    ],
)
def test_a_key_that_does_not_fit_its_column(tmp_path: Path, users: pa.Array, keys: tuple[str, ...]) -> None:
    bench = replayed(tmp_path, "", users)
    for key in keys:
        for flags in ("", " --missing"):
            bench.refuses(f"why counts {key}{flags}", "key-value-invalid", column="user")
    if len(keys) > 1:
        bench.done("why counts 2.0")  # fewer digits than the column has


def test_a_key_that_is_not_a_number_is_found_in_the_logs(tmp_path: Path) -> None:
    found = missing(replayed(tmp_path, LARGE, pa.array([float("nan"), 1.0, float("nan")])), "nan")
    assert (found["why"], len(found["records"])) == ("let_go", 2)


def test_more_drops_than_records_have_no_share(tmp_path: Path) -> None:
    bench = replayed(tmp_path, COUNTED, pa.array(["a", *[None] * 7]))
    (drop,) = bench.json("report counts")["drops"]
    assert (drop["records"], drop["share"]) == (21, None)
