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
SAME_SIZE = ("with a flipped bit",)
"""Found by whoever reads the file."""
OTHER_SIZE = tuple(how for how in HARMS if how not in SAME_SIZE)
"""Found by the listing before each command."""
_COPY, _REPUBLISH = "from a copy", "rewindow republish counts"
_STATE = "state/counts/sums/*/*.parquet"


def _kind(
    what: str, pattern: str, command: str, *says: str, code: int = 74, without: tuple[str, ...] = ()
) -> Iterator[Case]:
    for how, harm in HARMS.items():
        if how not in without:
            given = _harmed(pattern, harm)
            yield Case(f"{what} {how}", command, code, says, given, landed=not command.startswith("land"))


def _harmed(pattern: str, harm: Harm) -> Callable[[Bench], None]:
    def given(bench: Bench) -> None:
        found = sorted(bench.warehouse.glob(pattern), key=lambda path: (path.stat().st_mtime_ns, path))
        assert found, pattern
        harm(found)

    return given


def _delta_log(what: str, path: str, command: str) -> Iterator[Case]:
    """Corrupt the newest commit. A flipped bit may be harmless there; `test_flips` tries many."""
    without = ("with a flipped bit", "that is missing", "swapped with another")
    return _kind(what, f"{path}/_delta_log/*.json", command, _COPY, without=without)


CASES = [
    *_kind("a log file", "logs/activity/events/generation=1/**/*.parquet", "run counts", "land a new generation"),
    *_kind("a changelog file", _STATE, "run counts", _REPUBLISH),
    *_kind("an output file", "alerts/totals/*.parquet", "show counts --hashes", _COPY, without=OTHER_SIZE),
    *_kind("an output file", "alerts/totals/*.parquet", "show counts", _REPUBLISH, without=SAME_SIZE),
    *_kind("a journal file", "rewindow/journal/job=counts/*.parquet", "run counts", _REPUBLISH),
    *_kind("a runs ledger file", "rewindow/runs/name=counts/*.parquet", "run counts", _COPY),
    *_kind("a landing ledger file", "rewindow/landings/name=activity/*.parquet", "land activity", _COPY),
    *_delta_log("the runs' Delta log", "rewindow/runs", "run counts"),
    *_delta_log("the landings' Delta log", "rewindow/landings", "land activity"),
    *_delta_log("a log's Delta log", "logs/activity/events", "run counts"),
    *_delta_log("an output's Delta log", "alerts/totals", "run counts"),
]
