"""The switches: one for each decision that makes rewindow differ from Kafka Streams."""

from __future__ import annotations

from dataclasses import dataclass

SWITCHES = {
    "D2": "a stream-time schedule without alignment, made when stream time is known: Kafka's is due at once",
    "D6": "schedules that are due at the same time: Kafka fires them in the order of a binary heap",
    "D10": "sessions and sliding windows: Kafka's finals come 1 ms early, and its stores forget what is still open",
    "D11": "emit on close: Kafka looks for closed windows in a store that has lost some of them",
    "D12": "a join's results without a partner: Kafka sends some at once and some too late",
    "D13": "old values downstream: Kafka's is the initializer's, or that of the newest update after a suppress",
    "D16": "waiting for ever: Kafka's deadline overflows once its clock is above 0, and it does not wait at all",
    "D21": "sub-topologies: Kafka's test driver runs all of them as one task, with one stream time",
    "D24": "bytes of a buffer: Kafka counts the name of an internal topic with the application's in front",
    "L1": "records of the same timestamp: Kafka takes the one that a binary heap happens to give first",
}
"""What Kafka Streams (or its test driver) does, by the number of the decision that differs."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The decisions that are switched to Kafka's rule. The others follow ours."""

    kafka: frozenset[str] = frozenset()

    def follow_kafka(self, number: str) -> bool:
        """Return whether Kafka's rule is in effect for a decision."""
        return number in self.kafka
