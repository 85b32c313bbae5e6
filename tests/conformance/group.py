"""Play a partition-group scenario through `testing.partition_group`."""

from __future__ import annotations

from typing import Any

from rewindow.errors import DataError
from rewindow.streams.metrics import ENFORCED_PROCESSING, SKIPPED_RECORDS, add_up
from rewindow.streams.record import MAX_MS, TopicPartition
from rewindow.testing.partition_group import InvalidTimestamp, PartitionGroup, Picked
from tests.conformance.build import MissingError
from tests.conformance.played import Played


def play(scenario: dict[str, Any]) -> Played:
    """Play a scenario. The result of each step is a dictionary with the visible state of the group."""
    return _Player(scenario).played


class _Player:
    def __init__(self, scenario: dict[str, Any]) -> None:
        config = scenario["config"]
        idle = config.get("max_task_idle_ms", 0)
        self.played = Played()
        self._by_name = {name: TopicPartition(*name.rsplit("-", 1)) for name in scenario["partitions"]}
        self._names = {partition: name for name, partition in self._by_name.items()}
        self._next_offset = dict.fromkeys(self._by_name, 0)
        self._now_ms = config.get("wall_clock", 0)
        self._group = PartitionGroup(
            list(self._by_name.values()),
            max_task_idle_ms=MAX_MS if idle == "max" else idle,
            invalid_timestamp=InvalidTimestamp(config.get("timestamp_extractor", "fail")),
        )
        for number, step in enumerate(scenario["steps"]):
            ties = self._group.ties
            try:
                seen = self._take(step)
            except DataError as error:
                self.played.error, self.played.message = ("step", number), str(error)
                return
            if self._group.ties > ties:
                self.played.ties.add(number)
            self.played.steps.append({**seen, **self._state()})
        sums = add_up(self._group.metrics.as_rows())
        self.played.metrics = {
            "dropped-records-total": sum(m.total for key, m in sums.items() if key[2] == SKIPPED_RECORDS),
            "enforced-processing-total": sum(m.total for key, m in sums.items() if key[2] == ENFORCED_PROCESSING),
        }

    def _take(self, step: dict[str, Any]) -> dict[str, Any]:
        group = self._group
        if "add" in step:
            return self._add(step["add"], step["records"])
        if "ready" in step:
            return {"ready": group.is_ready(self._now_ms)}
        if "next" in step:
            picked = group.pick()
            return {"picked": picked and self._seen(picked)}
        if "run" in step:
            return {"picked": self._pick_all(only_if_ready=True)}
        if "drain" in step:
            return {"picked": self._pick_all(only_if_ready=False)}
        if not step.keys() & {"lags", "set_partition_time", "at", "advance"}:
            raise MissingError(f"a step with {', '.join(step)}")
        for name, lag in step.get("lags", {}).items():
            group.set_lag(self._by_name[name], lag)
        for name, time_ms in step.get("set_partition_time", {}).items():
            group.set_partition_time(self._by_name[name], time_ms)
        self._now_ms = step.get("at", self._now_ms + step.get("advance", 0))
        return {}

    def _add(self, name: str, records: list[dict[str, Any]]) -> dict[str, Any]:
        first = self._next_offset[name]
        self._next_offset[name] = first + len(records)
        rows = [(first + i, one["ts"], one.get("key"), one.get("value")) for i, one in enumerate(records)]
        self._group.add(self._by_name[name], rows)
        return {"buffered_in_partition": self._group.buffered(self._by_name[name])}

    def _pick_all(self, *, only_if_ready: bool) -> list[dict[str, Any]]:
        seen = []
        while self._group.buffered() and (not only_if_ready or self._group.is_ready(self._now_ms)):
            picked = self._group.pick()
            assert picked is not None
            seen.append(self._seen(picked))
        return seen

    def _seen(self, picked: Picked) -> dict[str, Any]:
        return {
            "partition": self._names[picked.partition],
            "offset": picked.offset,
            "ts": picked.timestamp,
            "corrupted": picked.is_corrupted,
            "stream_time": self._group.stream_time_ms,
        }

    def _state(self) -> dict[str, Any]:
        return {
            "stream_time": self._group.stream_time_ms,
            "partition_times": {self._names[p]: time for p, time in self._group.partition_times.items()},
            "buffered": self._group.buffered(),
            "all_buffered": all(self._group.buffered(partition) for partition in self._names),
        }
