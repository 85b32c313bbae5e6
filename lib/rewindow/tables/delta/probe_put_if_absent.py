"""Whether a store puts only if absent: asked of the store itself, before the first ledger of a warehouse is made there.

A ledger row is true because no second writer can take its version. On a disk delta-rs links a finished file to its name;
a bucket is asked for it by a condition (``If-None-Match``), and a store that does not know conditions lets several writers
win without a word. delta-rs looks before it puts, so only writers that come at once can tell.
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
    """Let writers contend for the versions of a table beside the one at ``path``, and remove it. A folder is not asked.

    Raises `ConfigError` (78) if several got one.
    """
    if not is_uri(path):
        return
    place = f"{path.rpartition('/')[0]}/probe-{uuid4().hex}"
    try:
        DeltaTable.create(place, _SCHEMA, storage_options=options_of(place))
        if any(_winners(place, turn) > 1 for turn in range(ROUNDS)):
            message = (
                f"{path}: its store lets two writers put one version, so a committed row could be lost. Use a store that "
                "knows If-None-Match (README, Object stores), or a folder of a disk as the warehouse"
            )
            raise ConfigError(message)
    finally:
        with suppress(OSError):
            Folder(place).remove()


def _winners(place: str, turn: int) -> int:
    """Return how many of some writers were told that the next version is theirs."""
    start = Barrier(WRITERS)

    def write(writer: int) -> bool:
        table = DeltaTable(place, storage_options=options_of(place))
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
        except Exception:  # noqa: BLE001 - all but one are to be refused, in whatever words
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as writers:
        return sum(writers.map(write, range(WRITERS)))
