"""What is stored: files and bytes by table, and logs of tables that become a day older."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

from deltalake import DeltaTable

DAY_S = 86_400
LOG = "_delta_log"
_FORGETS, SEVEN_DAYS = "delta.deletedFileRetentionDuration", "interval 240 seconds"
"""Seven days of a play, in which an hour takes about 1.4 seconds."""


def stored(warehouse: Path) -> dict[str, tuple[int, int]]:
    """Return the files and bytes of each table, and of each table's Delta log as ``TABLE log``."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for folder, folders, names in os.walk(warehouse):
        if LOG in folders:
            tables = str(Path(folder).relative_to(warehouse))
            folders[:] = [one for one in folders if one != LOG]
            _add(found[f"{tables} log"], Path(folder, LOG))
            for inner in (*folders, "."):
                _add(found[tables], Path(folder, inner), is_deep=inner != ".")
            folders.clear()
        elif names:
            _add(found["other"], Path(folder), is_deep=False)
    return {name: (files, size) for name, (files, size) in sorted(found.items())}


def age_logs(warehouse: Path, seconds: float = DAY_S) -> None:
    """Make the files of all Delta logs older, so that Delta removes expired ones as it does in a year."""
    for log in warehouse.glob(f"**/{LOG}"):
        for file in os.scandir(log):
            at = file.stat().st_mtime - seconds
            os.utime(file, (at, at))


def forget_deleted(warehouse: Path) -> None:
    """Let Delta forget the names of deleted files after seven of the play's days, as it does after seven days of the clock.

    Otherwise each checkpoint would list every file that was ever deleted, which no year of the clock has.
    """
    for log in warehouse.glob(f"**/{LOG}"):
        table = DeltaTable(str(log.parent))
        if _FORGETS not in table.metadata().configuration:
            table.alter.set_table_properties({_FORGETS: SEVEN_DAYS})


def _add(total: list[int], folder: Path, *, is_deep: bool = True) -> None:
    for entry in os.scandir(folder):
        if entry.is_dir():
            if is_deep:
                _add(total, Path(entry.path))
        else:
            total[0] += 1
            total[1] += entry.stat().st_size
