"""How two tables differ: the first row, or key by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.core.staging import StagedFile, TaskReport
from rewindow.delta.contents import read_rows, sorted_rows
from rewindow.delta.files import Folder

IGNORED = ("_run", "_offset")
"""Columns in which two lineages may differ and say the same: who made a row, and its number in its own table."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """How many keys two tables have alike, otherwise, or one without the other; and rows of some that differ."""

    equal: int
    different: int
    only_first: int
    only_second: int
    samples: Sequence[tuple[Row, Sequence[Row], Sequence[Row]]] = field(default=())
    """For each: the key, the first table's rows of it, the second's."""

    @property
    def is_none(self) -> bool:
        """Whether the tables say the same."""
        return not (self.different or self.only_first or self.only_second)


def compare_tables(
    first: str, second: str, keys: Sequence[str], *, epochs: tuple[int, int], samples: int = 5
) -> Difference:
    """Compare the rows of the epochs after the first and through the second of ``epochs`` of two output tables."""
    after, through = epochs
    inside = (pc.field("_epoch") > after) & (pc.field("_epoch") <= through)
    return compare(read_rows(first, where=inside), read_rows(second, where=inside), keys, samples=samples)


def compare(first: pa.Table, second: pa.Table, keys: Sequence[str], *, samples: int = 5) -> Difference:
    """Compare two tables of the same columns key by key: the rows of a key in their order, all columns but `IGNORED`."""
    one, other = (_by_key(table, keys) for table in (first, second))
    both = one.keys() & other.keys()
    differing = [key for key in both if one[key] != other[key]]
    ours, theirs = one.keys() - other.keys(), other.keys() - one.keys()
    shown = sorted([*differing, *ours, *theirs], key=repr)[:samples]
    values = _values(first, keys)
    pairs = [
        (dict(zip(keys, key, strict=True)), _as_rows(values, one.get(key, ())), _as_rows(values, other.get(key, ())))
        for key in shown
    ]
    return Difference(len(both) - len(differing), len(differing), len(ours), len(theirs), pairs)


def _values(table: pa.Table, keys: Sequence[str]) -> list[str]:
    return [name for name in table.column_names if name not in keys and name not in IGNORED]


def _as_rows(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> list[Row]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def _by_key(table: pa.Table, keys: Sequence[str]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    ordered = table.sort_by([(name, "ascending") for name in ("_partition", "_offset")])
    values = _values(table, keys)
    found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    columns = [ordered[name].to_pylist() for name in (*keys, *values)]
    for cells in zip(*columns, strict=True):
        found.setdefault(cells[: len(keys)], []).append(cells[len(keys) :])
    return found


def staged_rows(root: str, reports: Sequence[TaskReport], target: str) -> pa.Table | None:
    """Return the rows that were staged for a target, in total order; None if there are none, or they are gone."""
    folder = Folder(root)
    files: list[StagedFile] = [file for report in reports for file in report.files if file.target == target]
    if not files or any(folder.facts(file.path) is None for file in files):
        return None
    return sorted_rows(pa.concat_tables([folder.read_table(file.path) for file in files]))


def first_difference(before: pa.Table | None, now: pa.Table | None, *, ignored: Sequence[str] = ()) -> str | None:
    """Return in words the first row, in total order, that two sets of rows do not share; None if there is none.

    ``ignored`` columns do not count. Rows that cannot be read are none.
    """
    (names, gone), (others, new) = _counted(before, ignored), _counted(now, ignored)
    gone, new = gone - new, new - gone
    apart = sorted([*gone, *new], key=repr)
    if not apart:
        return None
    where = "before, not now" if apart[0] in gone else "now, not before"
    return f"{where}: {dict(zip(names or others, apart[0], strict=True))}"


def _counted(rows: pa.Table | None, ignored: Sequence[str]) -> tuple[list[str], Counter[tuple[Any, ...]]]:
    if rows is None:
        return [], Counter()
    kept = rows.select([name for name in rows.column_names if name not in ignored])
    return kept.column_names, Counter(zip(*kept.to_pydict().values(), strict=True))
