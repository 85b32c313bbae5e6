"""The landed files with records that no epoch has released yet. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.contracts.staged_files import StagedFile
from rewindow.control.ingest.landings import LandedRange
from rewindow.control.ingest.watermarks import HeldFile
from rewindow.streams.record import TopicPartition


def held_file(topic: str, file: StagedFile) -> HeldFile:
    """Return a landed file as a `HeldFile`."""
    smallest, largest = file.stats["minValues"], file.stats["maxValues"]
    return HeldFile(topic, file.path, smallest["offset"], largest["offset"] + 1, largest["timestamp"])


def held_range(tp: TopicPartition, landed: LandedRange) -> HeldFile:
    """Return a landed range of a log with source offsets as a `HeldFile` without a path."""
    return HeldFile(tp.topic, "", landed.start, landed.end, landed.max_timestamp, tp.partition, landed.base)


def landed_ranges(body: Mapping[str, Any]) -> dict[TopicPartition, LandedRange]:
    """Return what a landing added to each topic-partition."""
    return {TopicPartition(r[0], r[1]): LandedRange(*r[2:]) for r in body["ranges"]}


def held_files(
    bodies: Sequence[Mapping[str, Any]],
    ranges: Mapping[TopicPartition, LandedRange],
    before: Mapping[TopicPartition, Sequence[HeldFile]],
) -> dict[TopicPartition, tuple[HeldFile, ...]]:
    """Return the files with unreleased records. Searches from the last landing backwards, because there are few.

    ``before`` are those before the landings of the bodies: whatever is not among them was released before.
    """
    missing = {tp for tp, landed in ranges.items() if landed.release < landed.end}
    held: dict[TopicPartition, list[HeldFile]] = {tp: [] for tp in ranges if tp in missing}
    for body in reversed(bodies):
        if not missing:
            break
        for tp, landed in landed_ranges(body).items():
            if tp in missing and tp.topic not in body["files"] and landed.end > landed.start:
                held[tp].append(held_range(tp, landed))
                if landed.start <= ranges[tp].release:
                    missing.discard(tp)
        for topic, files in body["files"].items():
            for data in files:
                tp = TopicPartition(topic, data["partition"])
                if tp not in held:
                    continue
                file = held_file(topic, StagedFile.from_json(data))
                if file.end > ranges[tp].release:
                    held[tp].append(file)
                if file.start <= ranges[tp].release:
                    missing.discard(tp)
    for tp in sorted(missing):
        held[tp] += [file for file in before.get(tp, ()) if file.end > ranges[tp].release]
    return {tp: tuple(sorted(files, key=lambda file: file.start)) for tp, files in held.items()}
