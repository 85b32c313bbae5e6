"""The jobs of the record execution benchmark as handwritten loops, without a framework."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from rewindow.contracts.tasks import ROWS_AT_ONCE
from tests.bench.workload import GRACE_MS, HOUR_MS, INTERVAL_MS

Input = Iterator[tuple[int, str, float]]
"""Timestamp, key, amount."""


def read(path: str) -> Input:
    """Read a partition's file as record execution does: Arrow batches, converted to lists by column."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=["timestamp", "user", "amount"]):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class Store:
    """The store of the loop: a dictionary with the methods that the loop needs."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def get(self, key: str) -> int | None:
        return self.values.get(key)

    def put(self, key: str, value: int) -> None:
        self.values[key] = value

    def take_all(self) -> list[tuple[str, int]]:
        items = sorted(self.values.items())
        self.values.clear()
        return items


class HandWrittenCount:
    """The job `processor` by hand: a store, a ``process`` function, and a check of the clock after each record."""

    def __init__(self) -> None:
        self.counters = Store()
        self.results: list[tuple[Any, ...]] = []

    def process(self, key: str, amount: float) -> None:
        del amount
        self.counters.put(key, (self.counters.get(key) or 0) + 1)

    def report(self, now_ms: int) -> None:
        for key, count in self.counters.take_all():
            self.results.append((key, count, now_ms))

    def run(self, rows: Input) -> list[tuple[Any, ...]]:
        clock, due = -1, -1
        for timestamp, key, amount in rows:
            if timestamp > clock:
                clock = timestamp
                if due < 0:
                    due = clock
            self.process(key, amount)
            if due <= clock:
                self.report(clock)
                due += ((clock - due) // INTERVAL_MS + 1) * INTERVAL_MS
        return self.results


class HandWrittenFinals:
    """The job `finals` by hand: open windows by start, late records dropped, windows sent after their grace period."""

    def __init__(self) -> None:
        self.windows: dict[int, dict[str, list[Any]]] = {}
        self.results: list[tuple[Any, ...]] = []

    def process(self, key: str, timestamp: int, amount: float) -> None:
        window = self.windows.setdefault(timestamp - timestamp % HOUR_MS, {})
        state = window.get(key)
        if state is None:
            window[key] = [1, amount, timestamp]
        else:
            state[0] += 1
            state[1] += amount
            if timestamp > state[2]:  # noqa: PLR1730 - the fast way
                state[2] = timestamp

    def close(self, start: int) -> None:
        window = self.windows.pop(start)
        for key in sorted(window):
            events, total, timestamp = window[key]
            self.results.append((key, start, start + HOUR_MS, events, total, timestamp))

    def run(self, rows: Input) -> list[tuple[Any, ...]]:
        clock, closed_to = -1, -1  # windows that start before `closed_to` are closed
        for timestamp, key, amount in rows:
            if timestamp > clock:
                clock = timestamp
                if clock - HOUR_MS - GRACE_MS >= closed_to:
                    closed_to = (clock - HOUR_MS - GRACE_MS) // HOUR_MS * HOUR_MS + HOUR_MS
                    for start in sorted(start for start in self.windows if start < closed_to):
                        self.close(start)
            if timestamp >= closed_to:
                self.process(key, timestamp, amount)
        return self.results
