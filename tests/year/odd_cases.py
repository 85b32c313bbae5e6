"""The cases of `python -m tests.year sizes`, and what is said of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.year import sizes
from tests.year.watched import watched

LAND, PLAN, RUN, SHOW = ("land", sizes.FEED), ("plan", sizes.JOB), ("run", sizes.JOB), ("show", sizes.JOB)
STATUS = (("ls",), ("status",))
FIRST = sizes.JOB + "000"
RECORD = "record"


@dataclass(frozen=True, slots=True)
class Case:
    """A project of an odd size, and the commands that are called in it. Each may take ``most_mb`` and ``most_seconds``."""

    what: str
    size: int
    make: Callable[[Path, int], None]
    commands: tuple[tuple[str, ...], ...] = (LAND, PLAN, RUN, SHOW)
    most_mb: int = 6_000
    most_seconds: float = 1_800


@dataclass(slots=True)
class Called:
    """The commands of a case: words, seconds, MB, exit code and the last line of what was said."""

    what: str
    size: int
    is_clear: bool = True
    commands: list[dict[str, Any]] = field(default_factory=list)


CASES: Mapping[str, Case] = {
    "landings": Case("landings in one feed", 5_000, sizes.landings, (LAND, PLAN, RUN, *STATUS, SHOW, LAND, RUN)),
    "partitions": Case("partitions", 3_000, sizes.partitions, (LAND, PLAN, RUN, *STATUS, SHOW, LAND, RUN)),
    "jobs": Case("jobs in conf/", 500, sizes.jobs, (*STATUS, LAND, *STATUS, ("plan", FIRST), ("run", FIRST), *STATUS)),
    "record": Case("bytes in one record", 50_000_000, sizes.record),
    "record-by-record": Case(
        "bytes in one record, record execution", 50_000_000, partial(sizes.record, execution=RECORD)
    ),
    "keys": Case("keys in one window", 2_000_000, sizes.keys),
    "keys-by-record": Case("keys in one window, record execution", 2_000_000, partial(sizes.keys, execution=RECORD)),
    "key": Case("records of one key", 10_000_000, sizes.key),
    "key-by-record": Case("records of one key, record execution", 10_000_000, partial(sizes.key, execution=RECORD)),
    "key-collected-by-record": Case(
        "records of one key, collected in one list, record execution",
        10_000_000,
        partial(sizes.key, body=sizes.COLLECT, execution=RECORD),
        most_seconds=240,
    ),
    "key-collected": Case(
        "records of one key, collected in one list", 10_000_000, partial(sizes.key, body=sizes.COLLECT)
    ),
}


def call(case: Case, size: int | None = None) -> Called:
    """Make a case's project and call its commands. After one that did not work, no other is called."""
    size = size or case.size
    called = Called(case.what, size)
    with TemporaryDirectory(prefix="rewindow-year-") as folder:
        root = Path(folder)
        case.make(root, size)
        for words in case.commands:
            done = watched(root, *words, most_mb=case.most_mb, most_seconds=case.most_seconds)
            said = "" if done.code == 0 else done.last_line.replace(folder, "...")
            called.commands.append(
                {
                    "words": " ".join(words),
                    "seconds": done.seconds,
                    "peak_mb": done.peak_mb,
                    "code": done.code,
                    "said": said,
                }
            )
            print(f"  {called.commands[-1]}", file=sys.stderr, flush=True)
            if done.code:
                called.is_clear = done.is_clear
                if not done.is_clear:
                    print(done.err[-3000:], file=sys.stderr)
                break
    return called
