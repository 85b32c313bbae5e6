"""The landing ledgers of a warehouse."""

from __future__ import annotations

from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.shared.paths import LANDINGS


class LandingLedgers:
    """The landing ledgers of a warehouse: of each feed always the same object, which reads no file twice."""

    def __init__(self, warehouse: str) -> None:
        """Bind to a folder or URI. Nothing is read."""
        self._warehouse = warehouse
        self._known: dict[str, Ledger] = {}

    def of(self, feed: str) -> Ledger:
        """Return a feed's ledger."""
        return self._known.setdefault(feed, Ledger(table_path(self._warehouse, LANDINGS), feed))
