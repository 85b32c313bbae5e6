"""Say why the log of a Delta table cannot be read, and how to restore the table.

If a log cannot be read, the data files still exist, and a ledger names them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from rewindow.errors import RewindowError, StorageError, one_line, unreadable
from rewindow.storage.locations import is_uri
from rewindow.tables.shared.paths import EXPECTATIONS, JOURNAL, LANDINGS, METRICS, QUARANTINE, RUNS

COMMIT_FILE = re.compile(r"(\d{20})\.json")
HINT = "_last_checkpoint"
_FROM_COPY = "Restore its _delta_log from a copy"
_ANY_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\..*parquet")
_LOG_PATH = re.compile(r".*/logs/([^/]+)/[^/]+")
_CHANGELOG_PATH = re.compile(r".*/state/([^/]+)/[^/]+/[0-9a-f]{8}")


def checkpointed(path: str) -> int:
    """Return the version of a log's last checkpoint; 0 if there is no checkpoint."""
    try:
        return int(json.loads(Path(f"{path}/_delta_log/{HINT}").read_bytes())["version"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        # Delta, too, ignores an unreadable `_last_checkpoint` and lists the log instead.
        return 0


def unreadable_log(path: str, error: Exception) -> RewindowError:
    """Return the error for a log that could not be read. It names a broken commit only if one was found by reading commits."""
    log, broken, misleading = Path(f"{path}/_delta_log"), None, list[str]()
    if (refused := unreadable(path, error)) is not None:
        return refused
    try:
        if not is_uri(path):
            whole, damaged = _checkpoints(log)
            broken, misleading = _broken(log, whole), _misleading(log, whole, damaged)
    except OSError as failure:
        return unreadable(path, failure) or StorageError(
            "table-changed-while-read", "{path} changed while it was read: {error}. Run again", path=path, error=failure
        )
    if broken is not None:
        return broken_commit(path, broken.version, broken.fault, is_newest=broken.is_newest)
    if misleading:
        return StorageError(
            "delta-log-checkpoint-broken",
            "the Delta log of {path} cannot be read: its checkpoint is broken or gone, but its commits are not. Remove {files} "
            "from its folder _delta_log, and nothing else, then run again",
            path=path,
            files=" and ".join(misleading),
        )
    return StorageError(
        "delta-log-unreadable",
        "the Delta log of {path} cannot be read: {error}. Run again. If that fails, too: {fix}",
        path=path,
        error=one_line(error),
        fix=_FROM_COPY,
    )


def broken_commit(path: str, version: int, fault: str, *, is_newest: bool) -> StorageError:
    """Return the error for a log with a broken commit.

    ``fault`` says what is wrong: it does not parse, is empty or is missing.
    """
    return StorageError(
        "delta-log-commit-broken",
        "the Delta log of {path} cannot be read: its commit {version:020}.json {fault}. {fix}",
        path=path,
        version=version,
        fault=fault,
        fix=way_out(path, is_newest=is_newest),
    )


def way_out(path: str, *, is_newest: bool = False) -> str:
    """Return advice on how to restore a table with a broken log, as sentences without the last full stop.

    ``is_newest``: whether only the newest commit is broken. If so, a ledger can still be used up to the commit before it.
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
    fault: str
    is_newest: bool


def _broken(log: Path, whole: AbstractSet[int]) -> _Broken | None:
    """Return the first broken commit after a log's last whole checkpoint; None if no commit is broken. Raises OSError."""
    commits = sorted(int(path.name[:20]) for path in log.iterdir() if COMMIT_FILE.fullmatch(path.name))
    start = max(whole) + 1 if whole else 0
    for version in range(start, max(commits, default=-1) + 1):
        fault = _wrong_with(log / f"{version:020}.json")
        if fault:
            return _Broken(version, fault, version == commits[-1])
    return None


def _misleading(log: Path, whole: AbstractSet[int], damaged: list[str]) -> list[str]:
    """Return the files of a log that mislead a reader: its damaged checkpoints, and a hint that names no whole checkpoint.

    The hint is the file ``_last_checkpoint``. Raises OSError.
    """
    is_hint_wrong = (log / HINT).exists() and checkpointed(str(log.parent)) not in whole
    return [*damaged, HINT] if is_hint_wrong else damaged


def _checkpoints(log: Path) -> tuple[set[int], list[str]]:
    """Return the versions of a log's whole checkpoints, and the names of its broken ones. Raises OSError."""
    names = sorted(path.name for path in log.iterdir() if _ANY_CHECKPOINT.fullmatch(path.name))
    broken = [name for name in names if not _is_parquet(log / name)]
    return {int(name[:20]) for name in names} - {int(name[:20]) for name in broken}, broken


def _is_parquet(path: Path) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - only a log that cannot be read needs it
    import pyarrow.parquet as pq  # noqa: PLC0415

    data = pa.BufferReader(path.read_bytes())
    try:
        pq.read_table(data)
    except (pa.ArrowException, OSError):
        return False
    return True


def _wrong_with(commit: Path) -> str:
    """Return what is wrong with a commit; an empty text if the commit can be read. Raises OSError."""
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
    if match := _LOG_PATH.fullmatch(path):
        return f"Without one, {remove} `rewindow land {match[1]}`"
    if match := _CHANGELOG_PATH.fullmatch(path):
        return f"Without one, {remove} `rewindow republish {match[1]}`"
    if path.endswith(f"/{QUARANTINE}"):
        return f"Without one, {remove} `rewindow land FEED` for each feed and `rewindow republish JOB` for each job"
    if path.endswith((f"/{METRICS}", f"/{JOURNAL}", f"/{EXPECTATIONS}")):
        return f"Without one, {remove} `rewindow republish JOB` for each job"
    return (
        f"Without one, if it is an output, {remove} `rewindow republish JOB`, with `--branch` for the table of a branch"
    )
