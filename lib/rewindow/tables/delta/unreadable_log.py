"""What to do about a Delta log that cannot be read. The data files are still there, and a ledger names them."""

from __future__ import annotations

import re
from typing import Final

from rewindow.tables.shared.paths import EXPECTATIONS, JOURNAL, LANDINGS, METRICS, QUARANTINE, RUNS

_FROM_COPY: Final = "Restore its _delta_log from a copy"

_LOG: Final = re.compile(r".*/logs/([^/]+)/[^/]+")
_CHANGELOG: Final = re.compile(r".*/state/([^/]+)/[^/]+/[0-9a-f]{8}")


def way_out(path: str) -> str:
    """Return how to get the table at a path back, as sentences without the last full stop."""
    for ledger, of in ((RUNS, "jobs"), (LANDINGS, "feeds")):
        if path.endswith(f"/{ledger}"):
            return (
                f"{_FROM_COPY}. Without one, remove its newest commit if only that one is broken: the next commands say what "
                f"is lost then. Keep the table, which is the ledger of all {of}"
            )
    return f"{_FROM_COPY}. {_without_copy(path)}"


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
