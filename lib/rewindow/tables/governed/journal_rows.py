"""The rows of one journal by attempt and part, as `gc` lists and deletes them.

The part of a block is the first element of its target: ``output``, ``changelog``, ``internal``, ``log``, ``metrics``,
``quarantine``, ``expectations``. That of another row is its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.control.gc import Garbage
from rewindow.engine.spark.spark_job import mapped
from rewindow.tables.governed.blocks import BLOCK
from rewindow.tables.governed.own_table import METRIC, REPORT, OwnTable

_PART = f"CASE kind WHEN '{BLOCK}' THEN split(path, '/')[1] ELSE kind END"
_AT_ONCE = 500
"""The attempts that one statement names."""
_NEVER = 1 << 62
"""Stands for the time of rows without one, which are never old."""
Item = TypeVar("Item")


class Listed(NamedTuple):
    """The rows of an attempt and a part, and when the last of them was appended (epoch ms)."""

    attempt: str
    part: str
    recorded_at: int


class JournalRows:
    """The rows of one job or feed that are no rows of its ledger."""

    def __init__(self, table: OwnTable, name: str) -> None:
        """``name``: of a job, or see `feed_name`. Nothing is read."""
        self._table, self._name = table, name

    def listed(self) -> list[Listed]:
        """Return what there is, without reading a block."""
        if not self._table.exists():
            return []
        grouped = self._rows().groupBy("attempt", F.expr(_PART).alias("part"))
        with mapped():
            found = grouped.agg(F.coalesce(F.max("recorded_at"), F.lit(_NEVER)).alias("last")).collect()
        return sorted(Listed(row["attempt"], row["part"], row["last"]) for row in found)

    def garbage(self, found: Sequence[tuple[Listed, str]]) -> Iterator[Garbage]:
        """Yield garbage with its size. ``found``: what can be deleted, and why. A path names an attempt and a part."""
        for some in _in_parts(found):
            attempts = sorted({one.attempt for one, _ in some})
            rows = self._rows().where(F.col("attempt").isin(attempts))
            sizes = rows.groupBy("attempt", F.expr(_PART).alias("part")).agg(F.sum(F.length("data")).alias("size"))
            with mapped():
                known = {(row["attempt"], row["part"]): row["size"] or 0 for row in sizes.collect()}
            for one, why in some:
                path = f"{one.attempt}/{one.part}"
                yield Garbage(str(self._table.name), path, known.get((one.attempt, one.part), 0), why)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete rows by `Garbage.path`, a few hundred attempts in one commit. What is gone already makes no difference."""
        for some in _in_parts(sorted(paths)):
            by_part: dict[str, list[str]] = {}
            for path in some:
                attempt, _, part = path.rpartition("/")
                by_part.setdefault(part, []).append(f"'{attempt}'")
            named = [f"({_PART} = '{part}' AND attempt IN ({', '.join(of)}))" for part, of in sorted(by_part.items())]
            self._table.delete(f"name = '{self._name}' AND seq IS NULL AND ({' OR '.join(named)})")

    def merge_files(self) -> None:
        """Merge the small files of the name's rows."""
        if self._table.exists():
            self._table.merge_files(self._name)

    def _rows(self) -> DataFrame:
        return self._table.frame().where((F.col("name") == self._name) & F.col("seq").isNull())


def _in_parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]


def is_report(part: str) -> bool:
    """Return whether a part is reports or metrics, which are kept as long as their attempt may count."""
    return part in (REPORT, METRIC)
