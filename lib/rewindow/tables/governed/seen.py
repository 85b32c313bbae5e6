"""What a run saw of a table before its COMMIT, as it is stored with the row: a fact that stays true."""

from __future__ import annotations

from typing import NamedTuple


class Seen(NamedTuple):
    """At a Delta version of a table, the last version of an application id. Then the table had the rows of its publications."""

    table: str
    app: str
    version: int
    reached: int
