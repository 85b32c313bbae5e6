"""The commits of a foreign Delta table, read from its log: which files were added and removed, when, by which operation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from rewindow.storage.locations import filesystem_of, is_uri
from rewindow.tables.delta.files import Folder


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A data file: its full path, its partition values as text, and whether it adds rows or only rewrites them."""

    path: str
    values: tuple[tuple[str, str | None], ...]
    data_change: bool
    has_deletions: bool


@dataclass(frozen=True, slots=True)
class TableCommit:
    """One version of a table. ``time_ms`` is its writer's time; ``takes_rows``: it removes or replaces rows."""

    version: int
    time_ms: int | None
    operation: str
    adds: tuple[AddedFile, ...]
    takes_rows: bool


def read_commit(root: str, version: int) -> TableCommit | None:
    """Return the commit of a version, or None if the log no longer has it."""
    text = _read(f"{root.rstrip('/')}/_delta_log/{version:020}.json")
    return None if text is None else _parse(root, version, (json.loads(line) for line in text.split("\n") if line))


def full_path(root: str, path: str) -> str:
    """Return the full path of a data file. Paths in a Delta log are URL-encoded, and absolute in a shallow clone."""
    if path.startswith("file:"):
        return unquote(urlsplit(path).path)
    decoded = unquote(path)
    return decoded if decoded.startswith("/") or is_uri(decoded) else f"{root.rstrip('/')}/{decoded}"


def first_missing(root: str, paths: Sequence[str]) -> str | None:
    """Return the first of some data files that is not there. A bucket is listed, because a path is a request."""
    listed: set[str] = set()
    if is_uri(root):
        base = root.rstrip("/")
        listed = {f"{base}/{path}" for path, _ in Folder(base).listed()}
    return next((path for path in paths if path not in listed and not _is_there(path)), None)


def _is_there(path: str) -> bool:
    system, key = filesystem_of(path)
    return bool(system.get_file_info(key).type == fs.FileType.File)


def _parse(root: str, version: int, actions: Iterable[dict[str, Any]]) -> TableCommit:
    time_ms: int | None = None
    operation, takes_rows = "unknown", False
    adds = []
    for action in actions:
        if info := action.get("commitInfo"):
            time_ms = info.get("inCommitTimestamp", info.get("timestamp"))
            mode = (info.get("operationParameters") or {}).get("mode")
            operation = " ".join(filter(None, (info.get("operation", operation), mode)))
        elif add := action.get("add"):
            adds.append(
                AddedFile(
                    full_path(root, add["path"]),
                    # an empty text is null, says Delta's protocol
                    tuple(sorted((name, value or None) for name, value in (add.get("partitionValues") or {}).items())),
                    add.get("dataChange", True),
                    bool(add.get("deletionVector")),
                )
            )
        elif remove := action.get("remove"):
            takes_rows = takes_rows or remove.get("dataChange", True)
    return TableCommit(version, time_ms, operation, tuple(adds), takes_rows)


def _read(path: str) -> str | None:
    if is_uri(path):
        system, key = filesystem_of(path)
        if system.get_file_info(key).type == fs.FileType.NotFound:
            return None
        with system.open_input_stream(key) as stream:
            return bytes(stream.read()).decode()
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
