"""After a person was removed from the source, a new generation, a replay and `gc` leave no row of the person."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.scene import Bench
from tests.bad_input.test_recorded_topics import CODE, FEED, JOB, MINUTE, T0, Click, record

PERSON = "zoe"
FAR = 4_000_000_000_000
"""A time that is too far ahead, so that the record goes to the quarantine."""


def clicks_of(number: int, *, has_person: bool) -> list[Click]:
    """Return the clicks of a file; some are by the person, and one of those goes to the quarantine."""
    found = [("abz"[n % 3], T0 + (20 * number + n) * 5 * MINUTE, f"/{n}") for n in range(20)]
    found = [(PERSON if user == "z" else user, ts, page) for user, ts, page in found]
    return [*found, (PERSON, FAR, "/x")] if has_person else [click for click in found if click[0] != PERSON]


@pytest.fixture
def replaced(new_shop: Bench) -> Bench:
    """A project whose person was landed and replayed, and then removed from the source, in a second generation."""
    for path in ("conf/feeds/orders.yaml", "conf/jobs/daily_orders.yaml"):
        (new_shop.root / path).unlink()
    new_shop.write("conf/feeds/clicks.yaml", FEED % "order: file, ")
    new_shop.write("conf/jobs/windows.yaml", JOB)
    new_shop.write("jobs/windows.py", CODE)
    for number in range(3):
        record(new_shop, str(number), clicks_of(number, has_person=True))
        new_shop.done("land clicks", "run windows")
    for number in range(3):
        record(new_shop, str(number), clicks_of(number, has_person=False))
    new_shop.done("land clicks --new-generation")
    return new_shop


def rows_of_person(bench: Bench) -> list[str]:
    """Return the files of tables, but the journal, with a row of the person, whether or not their table names them."""
    files = [file for file in bench.warehouse.rglob("*.parquet") if "_delta_log" not in file.parts]
    return sorted(
        str(file.relative_to(bench.warehouse))
        for file in files
        if "journal" not in file.parts and PERSON in str(pq.ParquetFile(file).read().to_pylist())
    )


def generations(bench: Bench) -> set[int]:
    return set(read_rows(table_path(str(bench.warehouse), "logs/clicks/clicks"))["generation"].to_pylist())


def test_nothing_of_a_person_is_left_after_a_replay_and_gc(replaced: Bench) -> None:
    assert any("quarantine" in file for file in rows_of_person(replaced))
    replaced.done("rewind windows --to 0", "run windows", "gc --keep 0s")
    assert rows_of_person(replaced) == []
    assert generations(replaced) == {2}
    record(replaced, "3", clicks_of(3, has_person=False))
    replaced.done("land clicks", "run windows", "verify windows", "republish windows", "status", "gc --keep 0s")
    assert replaced.json("plan windows")["run"] is None


def test_a_generation_that_was_just_replaced_stays_for_the_retention_time(replaced: Bench) -> None:
    replaced.done("rewind windows --to 0", "run windows", "gc")
    assert generations(replaced) == {1, 2}


def test_a_generation_of_which_landings_are_kept_stays(replaced: Bench) -> None:
    record(replaced, "3", clicks_of(3, has_person=False))
    replaced.done("land clicks", "rewind windows --to 0", "land clicks --new-generation --keep 1", "run windows")
    replaced.done("gc --keep 0s", "verify windows")
    assert generations(replaced) == {2, 3}
