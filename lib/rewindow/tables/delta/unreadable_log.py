"""What to do about a Delta log that cannot be read. The data files are still there, and a ledger names them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

from rewindow.errors import RewindowError, StorageError, one_line, unreadable
from rewindow.storage.locations import is_uri
from rewindow.tables.shared.paths import EXPECTATIONS, JOURNAL, LANDINGS, METRICS, QUARANTINE, RUNS

_FROM_COPY: Final = "Restore its _delta_log from a copy"

_COMMIT: Final = re.compile(r"\d{20}\.json")
_CHECKPOINT: Final = re.compile(r"\d{20}\.checkpoint\..*parquet")
_LOG: Final = re.compile(r".*/logs/([^/]+)/[^/]+")
_CHANGELOG: Final = re.compile(r".*/state/([^/]+)/[^/]+/[0-9a-f]{8}")


def unreadable_log(path: str, error: Exception) -> RewindowError:
    """Return the error of a log that could not be read. Only a commit that is read and found broken may be removed."""
    log, broken = Path(f"{path}/_delta_log"), None
    if (refused := unreadable(path, error)) is not None:
        return refused
    try:
        if not is_uri(path):
            broken = _broken(log)
    except OSError as failure:
        return unreadable(path, failure) or StorageError(f"{path} changed while it was read: {failure}. Run again")
    if broken is not None:
        return broken_commit(path, broken.version, broken.what, is_newest=broken.is_newest)
    return StorageError(
        f"the Delta log of {path} cannot be read: {one_line(error)}. Run again. If that fails, too: {_FROM_COPY}"
    )


def broken_commit(path: str, version: int, what: str, *, is_newest: bool) -> StorageError:
    """Return the error of a log with a commit that does not parse, is empty or is missing; ``what`` says which."""
    return StorageError(
        f"the Delta log of {path} cannot be read: its commit {version:020}.json {what}. {way_out(path, is_newest=is_newest)}"
    )


def way_out(path: str, *, is_newest: bool = False) -> str:
    """Return how to get the table at a path back whose log is broken, as sentences without the last full stop.

    ``is_newest``: only its newest commit is. Of a ledger, everything before it can still be used.
    """
    for ledger, of in ((RUNS, "jobs"), (LANDINGS, "feeds")):
        if path.endswith(f"/{ledger}"):
            remove = (
                "Without one, remove its newest commit, the broken one: the next commands say what is lost then. "
                if is_newest
                else ""
            )
            return f"{_FROM_COPY}. {remove}Keep the table, which is the ledger of all {of}"
    return f"{_FROM_COPY}. {_without_copy(path)}"


class _Broken(NamedTuple):
    version: int
    what: str
    is_newest: bool


def _broken(log: Path) -> _Broken | None:
    """Return the first broken commit after a log's last checkpoint; None if all are whole. Raises OSError."""
    names = [path.name for path in log.iterdir()]
    checkpoints = [int(name[:20]) for name in names if _CHECKPOINT.fullmatch(name)]
    commits = sorted(int(name[:20]) for name in names if _COMMIT.fullmatch(name))
    first = max(checkpoints) + 1 if checkpoints else 0
    for version in range(first, max(commits, default=-1) + 1):
        what = _wrong_with(log / f"{version:020}.json")
        if what:
            return _Broken(version, what, version == commits[-1])
    return None


def _wrong_with(commit: Path) -> str:
    """Return what is wrong with a commit; an empty text if it can be read. Raises OSError."""
    try:
        lines = commit.read_bytes().splitlines()
    except FileNotFoundError:
        return "is gone"
    if not any(lines):
        return "is empty"
    try:
        is_whole = all(isinstance(json.loads(line), dict) for line in lines if line)
    except ValueError:
        is_whole = False
    return "" if is_whole else "is cut short or altered, so it cannot be parsed"


def _without_copy(path: str) -> str:
    remove = "remove the folder _delta_log and nothing else, and call"
    if found := _LOG.fullmatch(path):
        return f"Without one, {remove} `rewindow land {found[1]}`"
    if found := _CHANGELOG.fullmatch(path):
        return f"Without one, {remove} `rewindow republish {found[1]}`"
    if path.endswith(f"/{QUARANTINE}"):
        return f"Without one, {remove} `rewindow land` for each feed and `rewindow republish` for each job"
    if path.endswith((f"/{METRICS}", f"/{JOURNAL}", f"/{EXPECTATIONS}")):
        return f"Without one, {remove} `rewindow republish` for each job"
    return (
        f"Without one, if it is an output, {remove} `rewindow republish JOB`, with `--branch` for the table of a branch"
    )
