"""Two processes commit the same version of a table on a local disk. Never may both be told that they succeeded.

delta-rs writes a commit to a temporary file and links it to its name, which fails if the name exists (link(2)). This suite
verifies it: both processes open the table at the same version, wait for each other, and commit without retries. Rounds in
which the commits overlapped in time are counted. As a control, the same duel with a check before a rename, as in some
storages, shows that the suite would detect a fault.
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
"""Commits as one of two processes. Returns whether the storage reports success."""


class Meeting:
    """A barrier between two processes and the results of their rounds, in shared memory."""

    def __init__(self, rounds: int) -> None:
        self._memory = mmap.mmap(-1, (2 + 6 * rounds) * _COUNTER.size)

    def wait(self, me: int, turn: int) -> None:
        """Wait until the other process has reached this turn too."""
        self.put(me, turn)
        deadline = time.monotonic() + 30
        while self.get(1 - me) < turn:
            os.sched_yield()
            if time.monotonic() > deadline:
                message = "the other process did not arrive"
                raise TimeoutError(message)

    def put(self, index: int, value: int) -> None:
        _COUNTER.pack_into(self._memory, index * _COUNTER.size, value)

    def get(self, index: int) -> int:
        return int(_COUNTER.unpack_from(self._memory, index * _COUNTER.size)[0])


def fight(put: Put, path: str, rounds: int) -> dict[str, int]:
    """Let two processes commit each version. Count the rounds by what the processes were told."""
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
    """Prepare everything except the commit itself."""
    if put is not commit:
        return partial(put, path, me, turn)
    table = DeltaTable(path)
    while table.version() < turn:  # until the winning commit of the previous round is visible
        table = DeltaTable(path)
    return partial(_commit_through, table, me, turn)


def commit(path: str, me: int, turn: int) -> bool:
    """Commit through delta-rs, like the product, but without retries."""
    return _commit_through(DeltaTable(path), me, turn)


def _commit_through(table: DeltaTable, me: int, turn: int) -> bool:
    properties = CommitProperties(max_commit_retries=0, app_transactions=[Transaction(f"{me}", turn)])
    try:
        table.create_write_transaction(
            [], mode="append", schema=table.schema(), partition_by=[], commit_properties=properties
        )
    except Exception:  # noqa: BLE001 - the loser gets one of several errors
        return False
    return True


def look_then_rename(path: str, me: int, turn: int) -> bool:
    """Put like a storage without a conditional put: check whether the file exists, then rename."""
    mine, target = Path(path) / f"tmp-{me}-{turn}", Path(path) / f"{turn}.json"
    mine.write_text(str(me))
    if target.exists():
        return False
    mine.rename(target)
    return True


def look_then_link(path: str, me: int, turn: int) -> bool:
    """Put like a storage with a conditional put: link, which fails if the file exists."""
    mine, target = Path(path) / f"tmp-{me}-{turn}", Path(path) / f"{turn}.json"
    mine.write_text(str(me))
    with suppress(FileExistsError):
        os.link(mine, target)
        return True
    return False


def suite(settings: Settings) -> Figures:
    """Let processes compete for versions. Each version that both were told to have is a lost commit."""
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
        figures.count("wrong: the control, a check before a rename, did not fail", "put")
    figures.more = {"contested": fought["contested"], "delta-rs": fought, "look then rename": control, "link": linked}
    return figures


def _make(path: str) -> None:
    DeltaTable.create(path, pa.schema([("v", pa.int64())]))
