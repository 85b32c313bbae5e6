"""`land` on both backends: the same landings, log and quarantine, wherever it is killed and whoever else lands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rewindow.config.feed import FeedConfig
from rewindow.control.ledger_steps import drive
from rewindow.errors import NotNowError
from rewindow.tables.governed.warehouse import CatalogTables
from tests.crash.scene import FEED_CONFIG, LATER_MS, NOW_MS, TOPIC, write_source
from tests.protocol import backends
from tests.protocol.backends import Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEED = 3


def feed(name: str) -> FeedConfig:
    return FEED_CONFIG.model_copy(update={"feed": name})


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what one clean call lands on the backend of files."""
    files = backends.direct(tmp_path_factory.mktemp("clean"))
    write_source(str(files.root), SEED, hours=4)
    drive(files.landing(feed("clean"), LATER_MS))
    landed = files.landed("clean")
    assert landed["log"]
    assert landed["quarantine"]
    return landed


@pytest.fixture
def files(backend: Backend) -> Path:
    """Reset the source to its first two hours."""
    for hour in range(4):
        (backend.root / "raw" / f"hour-{hour}.parquet").unlink(missing_ok=True)
    write_source(str(backend.root), SEED)
    return backend.root


def grow(root: Path) -> None:
    write_source(str(root), SEED, hours=4)


def test_hourly_calls_land_what_one_call_lands(backend: Backend, files: Path, expected: dict[str, Any]) -> None:
    drive(backend.landing(feed("hourly"), NOW_MS))
    grow(files)
    drive(backend.landing(feed("hourly"), LATER_MS))
    assert backend.landed("hourly") == expected
    assert drive(backend.landing(feed("hourly"), LATER_MS)).landings == ()


@pytest.mark.parametrize("at", ["write", "decide", "publish events", "publish quarantine"])
def test_killed_before_a_step_the_next_call_makes_it_good(
    backend: Backend, files: Path, expected: dict[str, Any], at: str
) -> None:
    name = f"killed_{at.replace(' ', '_')}"
    grow(files)
    for step in backend.landing(feed(name), LATER_MS):
        if step.startswith(at):
            break
    else:
        pytest.fail(f"there is no step {at}")
    drive(backend.landing(feed(name), LATER_MS))
    assert backend.landed(name) == expected


def test_who_was_overtaken_lands_nothing(backend: Backend, files: Path, expected: dict[str, Any]) -> None:
    grow(files)
    late = backend.landing(feed("overtaken"), LATER_MS)
    while next(late) != "decide":
        pass
    drive(backend.landing(feed("overtaken"), LATER_MS))
    with pytest.raises(NotNowError):
        drive(late)
    assert backend.landed("overtaken") == expected


def test_two_who_publish_at_once_add_nothing_twice(backend: Backend, files: Path, expected: dict[str, Any]) -> None:
    drive(backend.landing(feed("two"), NOW_MS))
    grow(files)
    one = backend.landing(feed("two"), LATER_MS)
    while not next(one).startswith("publish events"):
        pass
    drive(backend.landing(feed("two"), LATER_MS))  # recovers first: publishes what the first decided
    drive(one)
    assert backend.landed("two") == expected


def test_a_new_generation_keeps_landings_and_lands_the_rest_again(backend: Backend, files: Path) -> None:
    drive(backend.landing(feed("again"), NOW_MS))
    before = backend.landed("again")
    grow(files)
    drive(backend.landing(feed("again"), LATER_MS, new_generation=True, keep=1))
    now = backend.landed("again")
    kept, made = now["landings"][: len(before["landings"])], now["landings"][len(before["landings"]) :]
    assert kept == before["landings"]
    assert {landing["generation"] for landing in made} == {2}
    assert made[0]["landing"] == 2
    assert {row["generation"] for row in now["log"]} == {1, 2}


def test_a_generation_that_only_drops_landings_begins_once_and_goes_on(
    backend: Backend, files: Path, expected: dict[str, Any]
) -> None:
    drive(backend.landing(feed("fewer"), NOW_MS))
    first = backend.landed("fewer")["landings"][0]
    early_ms = first["interval"][1]
    asked = {"new_generation": True, "keep": 1}
    begun = drive(backend.landing(feed("fewer"), early_ms, **asked))
    assert (begun.generation, begun.landings) == (2, ())
    rows = len(backend.feeds()[0].state("fewer"))
    assert drive(backend.landing(feed("fewer"), early_ms, **asked)).landings == ()
    assert len(backend.feeds()[0].state("fewer")) == rows
    assert drive(backend.landing(feed("fewer"), NOW_MS)).landings[0] == 2
    grow(files)
    drive(backend.landing(feed("fewer"), LATER_MS))
    columns = [name for name in expected["log"][0] if name not in ("generation", "name")]
    kept = [row for row in backend.landed("fewer")["log"] if row["generation"] == 2 or row["landing"] == 1]
    assert [[row[name] for name in columns] for row in kept] == [
        [row[name] for name in columns] for row in expected["log"]
    ]


def test_a_log_of_a_catalog_that_was_dropped_is_written_again(backend: Backend, files: Path) -> None:
    tables = backend.tables()
    if not isinstance(tables, CatalogTables):
        pytest.skip("of files: tests/tables")
    drive(backend.landing(feed("dropped"), NOW_MS))
    grow(files)
    drive(backend.landing(feed("dropped"), LATER_MS))
    drive(backend.landing(feed("dropped"), LATER_MS, new_generation=True, keep=1))
    before = backend.landed("dropped")
    spark = SparkSession.active()
    spark.sql(f"DROP TABLE {tables.log_name('dropped', TOPIC).quoted}")
    drive(backend.landing(feed("dropped"), LATER_MS))
    assert backend.landed("dropped") == before
