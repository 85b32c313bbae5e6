"""A client of Spark that died in its last statement: the server executes it, while the next `land` takes over."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rewindow.control.ledger_steps import drive
from rewindow.errors import NotNowError, StorageError
from rewindow.tables.governed.journal import SparkJournal
from tests.crash import scene
from tests.protocol import backends
from tests.protocol.backends import SEED

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]


def test_what_a_dead_landing_staged_is_removed_only_when_it_can_no_longer_land(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = backends.direct(tmp_path / "files")
    files.root.mkdir()
    files.land_scene(SEED, through=1)
    backend = backends.through_spark(spark, tmp_path, most_here=0)
    first = backend.landing_of_scene(SEED, 1)
    while next(first) != "decide":
        pass
    landed: list[str] = []
    drop = SparkJournal.drop

    def after_the_first_has_tried(journal: SparkJournal, attempts: Sequence[str]) -> None:
        with suppress(NotNowError):
            drive(first)
            landed.append("the dead landing")
        drop(journal, attempts)

    monkeypatch.setattr(SparkJournal, "drop", after_the_first_has_tried)
    drive(backend.landing_of_scene(SEED, 1))
    assert landed == [], "its rows would be gone"
    assert backend.landed(scene.FEED) == files.landed(scene.FEED)


@pytest.mark.parametrize("most_here", [0, 10_000], ids=["workers", "inline"])
def test_a_log_that_somebody_emptied_is_filled_again_after_a_drop(
    spark: SparkSession, tmp_path: Path, most_here: int
) -> None:
    files = backends.direct(tmp_path / "files")
    files.root.mkdir()
    files.land_scene(SEED, through=3)
    backend = backends.through_spark(spark, tmp_path, most_here=most_here)
    backend.land_scene(SEED, through=2)
    feeds, jobs = backend.feeds()
    log = jobs.log_name(scene.FEED, scene.TOPIC).quoted
    assert feeds.lagging(jobs.feed(scene.FEED)) == {}
    spark.sql(f"DELETE FROM {log}")
    feeds, jobs = backend.feeds()
    assert feeds.lagging(jobs.feed(scene.FEED)) == {scene.TOPIC: 1}, "landing 2 has no records"
    for _ in range(2):
        with pytest.raises(StorageError, match="were deleted outside rewindow"):
            drive(backend.landing_of_scene(SEED, 2))
    spark.sql(f"DROP TABLE {log}")
    drive(backend.landing_of_scene(SEED, 3))
    assert backend.landed(scene.FEED) == files.landed(scene.FEED)
