"""Two processes, one version of one table on a local disk: how often do both hear that they have it? It must be never.

delta-rs writes a commit to a file of its own and links it to its name, which fails if the name is taken (link(2)). This
suite does not believe it: both open the table at one version, wait for each other, commit without a second try, and the
rounds are counted in which their commits overlapped in time. A look before a rename, as some storages have it, is fought
for in the same way, to show that the suite would see it.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction

from tests.crash.forks import answer, fork
from tests.crash.matrix import folder
from tests.crash.settings import Figures, Settings

ROUNDS, QUICK_ROUNDS = 2_000, 100
_COUNTER = struct.Struct("<Q")

Put = Callable[[str, int, int], bool]
"""Commits as one of two; says whether the storage says that it landed."""


class Meeting:
    """A few numbers in memory that two processes share, and a barrier made of them."""

    def __init__(self, rounds: int) -> None:
        self._memory = mmap.mmap(-1, (2 + 6 * rounds) * _COUNTER.size)

    def wait(self, me: int, turn: int) -> None:
        """Wait until the other is here, too."""
        self.put(me, turn)
        deadline = time.monotonic() + 30
        while self.get(1 - me) < turn:
            os.sched_yield()
            if time.monotonic() > deadline:
                message = "the other did not come"
                raise TimeoutError(message)

    def put(self, index: int, value: int) -> None:
        _COUNTER.pack_into(self._memory, index * _COUNTER.size, value)

    def get(self, index: int) -> int:
        return int(_COUNTER.unpack_from(self._memory, index * _COUNTER.size)[0])


def fight(put: Put, path: str, rounds: int) -> dict[str, int]:
    """Let two processes put at each version; count who was told what."""
    meeting = Meeting(rounds)

    def play(me: int, _pipe: int) -> None:
        for turn in range(rounds):
            ready = prepare(put, path, me, turn)
            meeting.wait(me, turn + 1)
            begun = time.perf_counter_ns()
            won = ready()
            index = 2 + 6 * turn + 3 * me
            for offset, value in enumerate((int(won), begun, time.perf_counter_ns())):
                meeting.put(index + offset, value)

    children = [fork(partial(play, me)) for me in (0, 1)]
    codes = [child.finish(600) for child in children]
    assert codes == [0, 0], [child.said for child in children]
    counted = {"rounds": rounds, "contested": 0, "both": 0, "none": 0}
    for turn in range(rounds):
        first, second = ([meeting.get(2 + 6 * turn + 3 * me + n) for n in range(3)] for me in (0, 1))
        counted["contested"] += max(first[1], second[1]) < min(first[2], second[2])
        counted["both"] += first[0] + second[0] == 2
        counted["none"] += first[0] + second[0] == 0
    return counted


def prepare(put: Put, path: str, me: int, turn: int) -> Callable[[], bool]:
    """Get everything ready but the commit itself."""
    if put is not commit:
        return partial(put, path, me, turn)
    table = DeltaTable(path)
    while table.version() < turn:  # the other's winning commit of the round before is on its way
        table = DeltaTable(path)
    return partial(_commit_through, table, me, turn)


def commit(path: str, me: int, turn: int) -> bool:
    """Commit through delta-rs, as the product does, but without a second try."""
    return _commit_through(DeltaTable(path), me, turn)


def _commit_through(table: DeltaTable, me: int, turn: int) -> bool:
    properties = CommitProperties(max_commit_retries=0, app_transactions=[Transaction(f"{me}", turn)])
    try:
        table.create_write_transaction(
            [], mode="append", schema=table.schema(), partition_by=[], commit_properties=properties
        )
    except Exception:  # noqa: BLE001 - the loser is told so in many ways
        return False
    return True


def look_then_rename(path: str, me: int, turn: int) -> bool:
    """Put as a storage does that has no conditional put: look, and then write."""
    mine, target = Path(path) / f"tmp-{me}-{turn}", Path(path) / f"{turn}.json"
    mine.write_text(str(me))
    if target.exists():
        return False
    mine.rename(target)
    return True


def look_then_link(path: str, me: int, turn: int) -> bool:
    """Put as an atomic storage does."""
    mine, target = Path(path) / f"tmp-{me}-{turn}", Path(path) / f"{turn}.json"
    mine.write_text(str(me))
    with suppress(FileExistsError):
        os.link(mine, target)
        return True
    return False


def suite(settings: Settings) -> Figures:
    """Fight for versions; each that both were told to have is a lost commit."""
    rounds = QUICK_ROUNDS if settings.quick else ROUNDS
    figures = Figures("put")
    with folder() as root:
        answer(partial(_make, f"{root}/t"))
        fought = fight(commit, f"{root}/t", rounds)
        versions = answer(lambda: DeltaTable(f"{root}/t").version())
        for name in ("rename", "link"):
            Path(root, name).mkdir()
        control = fight(look_then_rename, f"{root}/rename", rounds)
        linked = fight(look_then_link, f"{root}/link", rounds)
    figures.cases = rounds
    figures.lost = fought["both"]
    if fought["none"] or versions != rounds or linked["both"]:
        figures.count(f"wrong: {fought}, {versions} versions, linked {linked}", "put")
    if not fought["contested"]:
        figures.count("not reached: no two commits overlapped", "put")
    if not control["both"] and not settings.quick:
        figures.count("wrong: not even a look before a rename was seen to fail", "put")
    figures.more = {"contested": fought["contested"], "delta-rs": fought, "look then rename": control, "link": linked}
    return figures


def _make(path: str) -> None:
    DeltaTable.create(path, pa.schema([("v", pa.int64())]))
