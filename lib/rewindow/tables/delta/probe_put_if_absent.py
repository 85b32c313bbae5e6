"""Probe whether an object store puts files only if absent, before the first ledger of a warehouse is created there.

A ledger row is true because no second writer can take its version. On a disk delta-rs links a finished file to its name. A
bucket needs a conditional put (``If-None-Match``), and a store that ignores the condition silently lets several writers
win. delta-rs looks before it puts, so only concurrent writers show the difference.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction

from rewindow.errors import ConfigError
from rewindow.storage.locations import is_uri, options_of
from rewindow.tables.delta.files import Folder

WRITERS, ROUNDS = 5, 2

_SCHEMA = pa.schema([("probe", pa.string())])


def check_store(path: str) -> None:
    """Let writers compete for the versions of a temporary table beside ``path``. A local folder is not probed.

    Raises `ConfigError` (78) if several writers got the same version.
    """
    if not is_uri(path):
        return
    probe = f"{path.rpartition('/')[0]}/probe-{uuid4().hex}"
    try:
        DeltaTable.create(probe, _SCHEMA, storage_options=options_of(probe))
        if any(_winners(probe, turn) > 1 for turn in range(ROUNDS)):
            raise ConfigError(
                "storage-without-put-if-absent",
                "{path}: its store lets two writers write the same version, so a committed row could be "
                "lost. Use a store that supports If-None-Match (docs/deployment/buckets.md), or a local "
                "folder as the warehouse",
                path=path,
            )
    finally:
        with suppress(OSError):
            Folder(probe).remove()


def _winners(probe: str, turn: int) -> int:
    """Return how many writers were told that they got the next version."""
    start = Barrier(WRITERS)

    def write(writer: int) -> bool:
        table = DeltaTable(probe, storage_options=options_of(probe))
        start.wait()
        try:
            table.create_write_transaction(
                [],
                mode="append",
                schema=table.schema(),
                partition_by=[],
                commit_properties=CommitProperties(
                    max_commit_retries=0, app_transactions=[Transaction(f"{turn}-{writer}", 1)]
                ),
            )
        except Exception:  # noqa: BLE001 - all but one must be rejected, whatever the exception
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as writers:
        return sum(writers.map(write, range(WRITERS)))
