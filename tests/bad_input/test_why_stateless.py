"""`why` of jobs without windows, of joins, of keys that a job makes, and of keys that no row can have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.contracts.instants import instant
from rewindow.errors import ReasonMessage
from tests.bad_input.newcomer import JOB, ROWS_FEED, daily_project
from tests.bad_input.scene import FEED, HOUR, T0, Bench, goes_on, project_of, topology, without_spark
from tests.refusals import containing, told

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


EITHER = "def either(one, other):\n    return one\n"
IN_A_TABLE = 'orders.join(orders.where("x > 5").to_table(store="big"), either).to("daily-orders")'
LEFT_JOIN = (
    'orders.left_join(orders.where("x > 5"), either, JoinWindows.of("1h", grace="10m"), name="both").to("daily-orders")'
)


INNER_JOIN = (
    'orders.join(builder.stream("others"), either, JoinWindows.of("1h", grace="1h"), name="both").to("daily-orders")'
)
OTHERS = "  others: {source: {path: others, format: parquet}, key: user, timestamp: t, arrived_at: got, value: [x]}\n"


def partnerless(tmp_path: Path, join: str) -> list[ReasonMessage]:
    with without_spark():
        bench = daily_project(tmp_path / "project")
        if join == INNER_JOIN:
            bench.write("conf/feeds/orders.yaml", ROWS_FEED + OTHERS)
            others = [{"user": "ann", "t": T0, "got": T0, "x": 1}]
            (bench.root / "others").mkdir()
            pq.write_table(pa.Table.from_pylist(others), bench.root / "others/one.parquet")
        bench.write("shop_job.py", topology('orders = builder.stream("orders")', join, before=EITHER))
        bench.rows("one", [{"user": user, "t": T0, "got": T0, "x": x} for user, x in (("ann", 9), ("bob", 1))])
        bench.done("land orders", "run daily_orders")
        return bench.why("daily_orders bob")


def test_a_record_without_a_partner_in_a_table_is_not_called_filtered(tmp_path: Path) -> None:
    told(partnerless(tmp_path, IN_A_TABLE), "records-without-partner", job="daily_orders", store="big")


def test_a_record_that_waits_for_a_partner_has_a_deadline(tmp_path: Path) -> None:
    told(partnerless(tmp_path, LEFT_JOIN), "join-waits-for-partner", time=instant(T0 + HOUR + HOUR // 6))


def test_the_log_without_a_partner_is_named(tmp_path: Path) -> None:
    told(partnerless(tmp_path, INNER_JOIN), "join-needs-partner", node="both", none=containing("others"))


DAY = 24 * HOUR
MOVED = '.select_key(lambda key, row: "all", key=str)\n        .where("x > 0")'


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory, in_process: None) -> Bench:
    moved = daily_project(tmp_path_factory.mktemp("moved") / "project")
    moved.write("conf/jobs/daily_orders.yaml", f"{JOB}dropped: quarantine\n")
    moved.edit("shop_job.py", '.where("x > 0")', MOVED)
    for name, days in (("first", [0, 1, 2, 5]), ("late", [1, 6]), ("later", [1, 3, 7])):
        rows = [{"user": "ann", "t": T0 + day * DAY, "got": T0 + day * DAY + 1, "x": day + 1} for day in days]
        moved.rows(name, rows)
        moved.done("land orders", "run daily_orders")
    return moved


def notes(moved: Bench, words: str) -> list[ReasonMessage]:
    found = moved.said(f"why daily_orders all {words}")
    return [*found.get("notes", ()), *found.get("reasons", ())]


def test_dropped_records_of_the_windows_row_are_counted(moved: Bench) -> None:
    told(notes(moved, f"--window {day(1)}"), "key-in-quarantine", records="2 records", reason="window-closed")
    assert "key-in-quarantine" not in [note.code for note in notes(moved, f"--window {day(2)}")]


def test_a_window_without_a_row_names_what_was_dropped_of_it(moved: Bench) -> None:
    told(notes(moved, f"--window {day(3)} --missing"), "key-in-quarantine", records="1 record", reason="window-closed")


def test_a_lag_that_holds_the_window_open_is_named_behind_a_repartition(moved: Bench) -> None:
    moved.write("conf/feeds/orders.yaml", f"{ROWS_FEED}lag: 2d\n")
    moved.done("land orders --new-generation", "run daily_orders --branch lags")
    told(
        notes(moved, f"--window {day(6)} --missing --branch lags"),
        "result-waits-for-clock",
        reason=containing("lag: 2d"),
    )


def day(number: int) -> str:
    return instant((T0 + number * DAY) // DAY * DAY).replace(" ", "T")
