"""The format of stored rows: every row of a ledger or journal states the version it was written in (R8).

Rows of another version are refused before anything is made of them. `FORMAT` grows by one whenever the meaning of a
stored row changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from rewindow.control.plan.spec import canonical_json
from rewindow.errors import CheckpointError

FORMAT = 2
"""The format that this version reads and writes. Version 0.1 wrote format 1 and did not state it."""

_KEY = "format"
_ADDED = {"journal": "sub_topology", "metrics": "branch"}
"""Of tables whose columns changed since format 1, a column that format 1 did not have."""
_OWN_TABLE = re.compile(r"rewindow[/_](journal|metrics)$")


def stored_json(data: Mapping[str, Any]) -> str:
    """Return the JSON text of a stored row, which states `FORMAT`."""
    return canonical_json({**data, _KEY: FORMAT})


def load_stored(text: str, table: str) -> dict[str, Any]:
    """Return the data of a stored row without its format. Raises `CheckpointError` (76) if it has another format."""
    data: dict[str, Any] = json.loads(text)
    _check_format(data.pop(_KEY, 1), table)
    return data


def check_layout(table: str, columns: Collection[str]) -> None:
    """Raise `CheckpointError` (76) if a table of rewindow's own has the columns of format 1."""
    own = _OWN_TABLE.search(table)
    if own and _ADDED[own[1]] not in columns:
        _check_format(1, table)


def _check_format(found: object, table: str) -> None:
    if found == FORMAT:
        return
    if found == 1:
        message = (
            f"{table} was written by rewindow 0.1 (format 1), this version reads format {FORMAT}: choose another "
            "warehouse and land again, or read it with rewindow 0.1"
        )
    else:
        message = f"{table} has rows of format {found}, this version reads format {FORMAT}: upgrade rewindow"
    raise CheckpointError(message)
