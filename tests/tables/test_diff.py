"""The diff of two tables by partitions equals a naive comparison, for any number of partitions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from rewindow.app.result_lines import shown_rows
from rewindow.tables.delta import diff
from rewindow.tables.delta.diff import compare_tables
from rewindow.tables.shared.diff import TableDiff, compare, first_difference, rows_apart
from tests.properties.effort import examples
from tests.refusals import containing, refused

SCHEMA = pa.schema(
    [
        ("user", pa.string()),
        ("at", pa.int64()),
        ("rate", pa.float64()),
        ("value", pa.int64()),
        ("share", pa.float64()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_epoch", pa.int64()),
        ("_run", pa.int64()),
    ]
)
KEYS = ["user", "at", "rate"]
FLOATS = st.sampled_from([None, 0.0, -0.0, 1.5, math.nan])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "user": st.sampled_from([None, "", "ann", "bob"]),
            "at": st.sampled_from([None, 0, -1, 2**62]),
            "rate": FLOATS,
            "value": st.integers(0, 1),
            "share": FLOATS,
            "_partition": st.integers(0, 1),
            "_epoch": st.integers(1, 3),
            "_run": st.integers(1, 9),
        }
    ),
    max_size=12,
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([row | {"_offset": n} for n, row in enumerate(rows)], schema=SCHEMA)


def naive(first: pa.Table, second: pa.Table, keys: list[str], samples: int) -> TableDiff:
    """Compare row by row, with dictionaries."""
    values = [name for name in first.column_names if name not in {*keys, "_run", "_offset"}]
    versions: list[dict[Any, Any]] = []
    for side in (first, second):
        found: dict[Any, Any] = {}
        for row in side.sort_by([("_partition", "ascending"), ("_offset", "ascending")]).to_pylist():
            key = tuple(_value(row[name]) for name in keys)
            found.setdefault(key, []).append(tuple(_value(row[name]) for name in values))
        versions.append(found)
    one, other = versions
    both = one.keys() & other.keys()
    differing = [key for key in both if one[key] != other[key]]
    apart = [*differing, *(one.keys() ^ other.keys())]
    shown = [
        (
            dict(zip(keys, key, strict=True)),
            *_apart(*([dict(zip(values, row, strict=True)) for row in s.get(key, ())] for s in versions)),
        )
        for key in sorted(apart, key=repr)[:samples]
    ]
    only = [len(mine.keys() - theirs.keys()) for mine, theirs in ((one, other), (other, one))]
    epoch = values.index("_epoch")
    timeless = [
        {key: [(*row[:epoch], *row[epoch + 1 :]) for row in rows] for key, rows in found.items()} for found in versions
    ]
    only_epoch = sum(timeless[0][key] == timeless[1][key] for key in differing)
    return TableDiff(len(both) - len(differing), len(differing), *only, shown, only_epoch)


def _apart(one: list[Any], other: list[Any]) -> tuple[list[Any], list[Any]]:
    ours, theirs = _without(one, other), _without(other, one)
    if ours or theirs:
        return ours, theirs
    positions = [at for at in range(len(one)) if one[at] != other[at]]
    return [one[at] for at in positions], [other[at] for at in positions]


def _without(rows: list[Any], others: list[Any]) -> list[Any]:
    left = rows[::-1]
    for row in others:
        if row in left:
            left.remove(row)
    return left[::-1]


def _value(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return math.nan if math.isnan(value) else value + 0.0  # one NaN object, which equals itself inside a tuple


def _as_values(found: TableDiff) -> Any:
    samples = [
        (
            {k: _value(v) for k, v in key.items()},
            *([{k: _value(v) for k, v in row.items()} for row in rows] for rows in versions),
        )
        for key, *versions in found.samples
    ]
    return found.equal, found.different, found.only_first, found.only_second, found.only_epoch, samples


def in_files(path: Path, rows: pa.Table, cut: int) -> str:
    for start in range(0, max(rows.num_rows, 1), cut):
        write_deltalake(str(path), rows.slice(start, cut), mode="append")
    return str(path)


@examples(300)
@given(ROWS, ROWS, st.integers(0, 4), st.booleans())
def test_it_finds_what_a_naive_comparison_finds(one, other, samples, has_keys):
    keys = KEYS if has_keys else []
    first, second = table(one), table([*one[len(one) // 2 :], *other])
    assert _as_values(compare(first, second, keys, samples=samples)) == _as_values(naive(first, second, keys, samples))


@examples(20)
@given(ROWS, ROWS, st.integers(1, 5))
def test_partitions_change_nothing(tmp_path_factory, one, other, size):
    folder = tmp_path_factory.mktemp("tables")
    first, second = table(one), table([*one[len(one) // 2 :], *other])
    paths = [in_files(folder / name, rows, 3) for name, rows in (("a", first), ("b", second))]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(diff, "PARTITION_ROWS", size)
        patched.setattr(diff, "_FILES", 3)
        found = compare_tables(*paths, KEYS, epochs=(1, 3), samples=4)
    compared = [rows.filter(pa.compute.field("_epoch") > 1) for rows in (first, second)]
    assert _as_values(found) == _as_values(naive(*compared, KEYS, 4))


def many(number: int) -> pa.Table:
    return table(
        [{"user": f"u{n % 50}", "at": n, "value": n % 7, "_partition": n % 2, "_epoch": 2} for n in range(number)]
    )


@pytest.fixture
def small_partitions(monkeypatch):
    monkeypatch.setattr(diff, "PARTITION_ROWS", 40)
    monkeypatch.setattr(diff, "_FILES", 4)


def test_no_more_than_a_bucket_or_a_key_is_in_memory(small_partitions):
    first, second = many(2_000), many(1_500)
    hot = table([{"user": "hot", "at": 1, "_partition": 0, "_epoch": 2}] * 500)
    versions = [pa.concat_tables([rows, hot]).to_reader(64) for rows in (first, second)]
    sizes = [(one.num_rows, other.num_rows) for one, other in diff.partition_pairs(*versions, ["user", "at"], 2_500)]
    assert [sum(side) for side in zip(*sizes, strict=True)] == [2_500, 2_000]
    assert sorted(max(pair) for pair in sizes)[-2] <= 80
    assert max(max(pair) for pair in sizes) <= 580


def test_a_full_disk_of_temporary_files_is_said(small_partitions, monkeypatch):
    def refuse(*_args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(diff.pa.ipc, "new_stream", refuse)
    readers = [many(200).to_reader() for _ in range(2)]
    with refused("scratch-folder-not-writable"):
        list(diff.partition_pairs(*readers, ["user"], 200))


def test_a_damaged_file_is_said_and_not_compared(tmp_path, small_partitions):
    paths = [in_files(tmp_path / name, many(300), 300) for name in "ab"]
    (file,) = (tmp_path / "b").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-30])
    with refused("file-unreadable"):
        compare_tables(*paths, ["user", "at"], epochs=(0, 9))


def test_a_column_that_only_one_has_makes_every_key_of_both_another():
    first = many(10)
    found = compare(first, first.append_column("more", pa.nulls(10, pa.int64())), ["user"])
    assert (found.equal, found.different) == (0, 10)
    assert "more" in found.samples[0][2][0]


def test_columns_of_other_types_are_compared_as_values():
    first = many(10)
    index = first.schema.get_field_index("value")
    as_double = first.set_column(index, "value", first["value"].cast(pa.float64()))
    assert compare(first, as_double, ["user"]).is_none
    as_text = first.set_column(index, "value", first["value"].cast(pa.string()))
    assert compare(first, as_text, ["user"]).different == 10


def test_of_a_key_with_many_rows_those_that_differ_are_shown():
    rows = [
        {"user": "ann", "at": 0, "rate": 0.0, "value": n, "share": None, "_partition": 0, "_epoch": 1}
        for n in range(900)
    ]
    changed = [row | {"value": -1} if row["value"] == 450 else row for row in rows]
    ((_, ours, theirs),) = compare(table(rows), table(changed), ["user"]).samples
    assert ([row["value"] for row in ours], [row["value"] for row in theirs]) == ([450], [-1])
    assert shown_rows(rows).endswith("; and 895 more rows")
    apart = rows_apart([{"a": 1, "b": 2}, {"a": 1, "b": 3}], [{"b": 2, "a": 1.0}, {"b": 4, "a": 1.0}])
    assert apart == ([{"a": 1, "b": 3}], [{"b": 4, "a": 1.0}]), (
        "a wider type or another order of columns is no difference"
    )


def test_equal_rows_between_others_are_not_shown():
    one, two, three, nan = ({"v": value} for value in (1, 2, 3, float("nan")))
    assert rows_apart([one, two, nan, three], [{"v": 4}, two, {"v": float("nan")}, {"v": 5}, three, three]) == (
        [one],
        [{"v": 4}, {"v": 5}, three],
    )
    assert rows_apart([one, two, three], [three, one, two, {"v": 4}]) == ([], [{"v": 4}])
    assert rows_apart([one, two, three], [one, three, two]) == ([two, three], [three, two])


def test_rows_with_nan_are_the_same_rows_in_any_order():
    before, after = ([{"rate": float("nan"), "at": at} for at in order] for order in ((1, 2), (2, 1)))
    assert first_difference(pa.Table.from_pylist(before), pa.Table.from_pylist(after)) is None
    other = pa.Table.from_pylist([{"rate": 1.0, "at": 1}, before[1]])
    found = first_difference(pa.Table.from_pylist(before), other)
    assert found == "now, not before: {'rate': 1.0, 'at': 1}, which had {'rate': nan}"


def test_the_first_difference_shows_times_and_what_a_changed_row_was():
    before = pa.Table.from_pylist([{"window_start": 1_767_571_200_000, "n": 2}, {"window_start": -1, "n": 7}])
    after = pa.Table.from_pylist([{"window_start": 1_767_571_200_000, "n": 3}, {"window_start": -1, "n": 7}])
    row = "before, not now: {'window_start': 2026-01-05 00:00:00Z, 'n': 2}"
    assert first_difference(before, after) == f"{row}, which now has {{'n': 3}}"
    assert first_difference(before, after.slice(1)) == row
    assert first_difference(None, before.slice(1)) == "now, not before: {'window_start': -1, 'n': 7}"


def test_tables_of_other_keys_have_nothing_to_compare():
    other = many(3).rename_columns(["person", *SCHEMA.names[1:]])
    with refused("diff-key-types-differ", column="user", other_type="missing", type=containing("string")):
        compare(many(3), other, ["user"])
