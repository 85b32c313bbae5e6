"""Corrupted files of the warehouse: each kind of file that a command reads, in each way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bad_input.cases import Case
from tests.bad_input.scene import Bench

Harm = Callable[[list[Path]], None]


def _flip(found: list[Path]) -> None:
    data = bytearray(found[-1].read_bytes())
    data[len(data) // 2] ^= 4
    found[-1].write_bytes(data)


def _truncate(found: list[Path]) -> None:
    found[-1].write_bytes(found[-1].read_bytes()[:-9])


def _empty(found: list[Path]) -> None:
    found[-1].write_bytes(b"")


def _delete(found: list[Path]) -> None:
    found[-1].unlink()


def _swap(found: list[Path]) -> None:
    first, last = found[0].read_bytes(), found[-1].read_bytes()
    assert first != last
    found[0].write_bytes(last)
    found[-1].write_bytes(first)


def _replace(found: list[Path]) -> None:
    found[-1].write_bytes(b"PAR1 this is no Parquet file PAR1")


HARMS: dict[str, Harm] = {
    "with a flipped bit": _flip,
    "that is cut short": _truncate,
    "that is empty": _empty,
    "that is missing": _delete,
    "swapped with another": _swap,
    "with other content": _replace,
}


def _kind(what: str, pattern: str, command: str, code: str, *how: str) -> Iterator[Case]:
    for name in how:
        given = _harmed(pattern, HARMS[name])
        yield Case(f"{what} {name}", command, code, {}, given)


def _harmed(pattern: str, harm: Harm) -> Callable[[Bench], None]:
    def given(bench: Bench) -> None:
        paths = sorted(bench.warehouse.glob(pattern), key=lambda path: (path.stat().st_mtime_ns, path))
        assert paths, pattern
        harm(paths)

    return given


_CUT = "that is cut short"
CASES = [
    *_kind(
        "a log file",
        "logs/activity/events/generation=1/**/*.parquet",
        "run counts",
        "log-file-unreadable",
        *HARMS,
    ),
    *_kind(
        "a changelog file",
        "state/counts/sums/*/*.parquet",
        "run counts",
        "checkpoint-file-unreadable",
        "with a flipped bit",
    ),
    *_kind(
        "an output file", "alerts/totals/*.parquet", "show counts --hashes", "file-unreadable", "with a flipped bit"
    ),
    *_kind("a journal file", "rewindow/journal/job=counts/*.parquet", "run counts", "report-altered", _CUT),
    *_kind("a runs ledger file", "rewindow/runs/name=counts/*.parquet", "run counts", "ledger-altered", _CUT),
    *_kind(
        "a landing ledger file", "rewindow/landings/name=activity/*.parquet", "land activity", "ledger-altered", _CUT
    ),
]
"""One harm of each kind of file, and all of one. `test_flips` tries many positions, `test_unreadable_logs` Delta logs."""
