"""The order keys of final results that another sub-topology reads (L1).

Record execution sends a result at the record that moves the closing node's clock to its due time, so the result has that record's
order key. Vectorized execution sends it at the end of the epoch, and looks up here which record that was.
"""

from __future__ import annotations

import numpy as np

from rewindow.engine.worker.vectorized.arrays import LEAST
from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.streams.record import MAX_MS, UNKNOWN


class ClosingOrder:
    """The records of one epoch at which the clock of the closing node reached a new step.

    All due times are ``shift_ms`` plus a multiple of ``step_ms``, so only the first record of each step is kept.
    """

    def __init__(self, step_ms: int, shift_ms: int) -> None:
        """Start before the first epoch."""
        self._step_ms, self._shift_ms = step_ms, shift_ms
        self.end_epoch()

    def end_epoch(self) -> None:
        """Forget the records: order keys begin anew in each epoch."""
        self._latest_ms, self._last_step = UNKNOWN, LEAST
        self._steps: list[Array] = []
        self._orders: list[Array] = []

    def keys(self, timestamps: Array) -> Array:
        """Return the order keys of the epoch's next records: the running maximum of all its timestamps."""
        orders = np.maximum(np.maximum.accumulate(timestamps), self._latest_ms)
        self._latest_ms = int(orders[-1])
        return np.asarray(orders)

    def observe(self, times: Array, orders: Array) -> None:
        """Note the node's clock, which never goes back, and the order key at each record that reaches it."""
        steps = (times - self._shift_ms) // self._step_ms
        is_new = steps > np.concatenate([[self._last_step], steps[:-1]])
        self._last_step = int(steps[-1])
        self._steps.append(steps[is_new])
        self._orders.append(orders[is_new])

    def of(self, due_ms: Array) -> Array:
        """Return the order keys of results that were due at a clock. What no record closed was closed by the epoch's end."""
        steps, orders = (np.concatenate([np.empty(0, np.int64), *some]) for some in (self._steps, self._orders))
        found = np.searchsorted(steps, (due_ms - self._shift_ms) // self._step_ms)
        return np.append(orders, MAX_MS)[found]
