"""A log gets another source, and landings are kept: it goes on where that is certain, and is refused elsewhere."""

from __future__ import annotations

import shutil

import pytest

from rewindow.errors import SourceError
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import HOUR, T0, feed_config, land_locally, log_rows, write_rows
from tests.ingest.test_delta_sources import append, row
from tests.refusals import fixes, refused

NOW = T0 + 9 * HOUR
TABLE, FILES = {"path": "table", "format": "delta"}, {"path": "raw", "format": "parquet"}
OF_ANOTHER_KIND = "is of another kind"
AGAIN = "land everything again: `rewindow land activity --new-generation`"


@pytest.fixture
def land(tmp_path):
    """Return a function that lands a source without intervals."""
    tables = DeltaFeedTables(f"{tmp_path}/w")

    def land(source, **more):
        return land_locally(feed_config(landing={}, log={"source": source}), tables, tmp_path, NOW, **more)

    land.tables = tables
    return land


def numbers(land):
    return sorted(row["x"] for row in log_rows(land.tables))


def write(root, name, *of):
    write_rows(root, name, [row(n) for n in of])


def refused_source(land, source, offer):
    """Return how the source changed and why landings cannot be kept. The definition is refused with this offer."""
    with pytest.raises(SourceError) as changed:
        land(source)
    assert str(changed.value).endswith(f"{AGAIN}{offer}")
    with refused("log-source-replaced", keep=1, topic="events") as said:
        land(source, new_generation=True, keep=1)
    assert fixes(said.value) == ["land activity --new-generation"]
    return said.value.facts["change"], said.value.facts["reason"]


def test_files_instead_of_a_table_are_refused_and_not_offered(land, tmp_path):
    append(str(tmp_path / "table"), [row(0)])
    land(TABLE)
    write(tmp_path, "new", 1)
    assert refused_source(land, FILES, "") == ("table -> raw", OF_ANOTHER_KIND)


def test_a_table_instead_of_files_is_refused(land, tmp_path):
    write(tmp_path, "old", 0)
    land(FILES)
    append(str(tmp_path / "table"), [row(1)])
    assert refused_source(land, TABLE, "") == ("raw -> table", OF_ANOTHER_KIND)


def test_a_table_of_the_name_that_the_files_have_now(land, tmp_path):
    append(str(tmp_path / "raw"), [row(0)])
    land({"path": "raw", "format": "delta"})
    shutil.rmtree(tmp_path / "raw")
    write(tmp_path, "new", 1)
    assert refused_source(land, FILES, "") == ("raw", OF_ANOTHER_KIND)


def test_a_folder_without_the_landed_files_is_refused_and_one_with_them_goes_on(land, tmp_path):
    write(tmp_path, "old", 0)
    land(FILES)
    (tmp_path / "raw").rename(tmp_path / "former")
    write(tmp_path, "new", 1)
    (tmp_path / "raw").rename(tmp_path / "moved")
    moved = {"path": "moved", "format": "parquet"}
    offer = ". With `--keep 1`, what is landed stays as it is, if moved has all that was landed from raw"
    assert "old.parquet" in refused_source(land, moved, offer)[1]
    shutil.copy(tmp_path / "former/old.parquet", tmp_path / "moved")
    assert land(moved, new_generation=True, keep=1).rows == 1
    assert numbers(land) == [0, 1]


def test_another_table_is_refused_and_a_moved_one_goes_on(land, tmp_path):
    append(str(tmp_path / "table"), [row(0)])
    land(TABLE)
    append(str(tmp_path / "other"), [row(1)])
    offer = ". With `--keep 1`, what is landed stays as it is, if other has all that was landed from table"
    other = {"path": "other", "format": "delta"}
    assert refused_source(land, other, offer) == ("table -> other", "is another table")
    shutil.rmtree(tmp_path / "other")
    (tmp_path / "table").rename(tmp_path / "other")
    append(str(tmp_path / "other"), [row(1)])
    assert land(other, new_generation=True, keep=1).rows == 1
    assert numbers(land) == [0, 1]


def test_with_intervals_another_source_goes_on_with_what_arrives_later(tmp_path):
    tables = DeltaFeedTables(f"{tmp_path}/w")

    def land(hours, source, arrived_at, **more):
        feed = feed_config(log={"source": source, "arrived_at": arrived_at, "value": ["x"]})
        return land_locally(feed, tables, tmp_path, T0 + hours * HOUR, **more)

    for hour in (0, 1):
        append(str(tmp_path / "table"), [row(hour, hour)], T0 + hour * HOUR)
    assert land(1, TABLE, None).rows == 1
    write_rows(tmp_path, "both", [row(hour, hour) for hour in (0, 1, 2, 3)])
    assert land(3, FILES, "got", new_generation=True, keep=1).rows == 2, "that of hour 0 is landed"
    assert land(4, FILES, "got").rows == 1
    append(str(tmp_path / "table"), [row(hour, hour) for hour in (3, 4)])
    assert land(5, TABLE, "got", new_generation=True, keep=4).rows == 1
    assert [row["x"] for row in sorted(log_rows(tables), key=lambda row: row["x"])] == [0, 1, 2, 3, 4]
