"""Read the time through which a feed's logs are complete, from the landing ledger, with delta-rs and without a JVM."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pendulum

from rewindow.config.load import find_project, load_feed, load_target, location_of
from rewindow.errors import ConfigError, SourceError, UsageError


def complete_through(
    project: str, target: str, feed: str, settings: Mapping[str, str | None] | None = None
) -> int | None:
    """Return the watermark of a feed's last landing, in epoch ms; None if the feed was never landed.

    ``settings``: environment variables that open a warehouse in a bucket. Storage options of the target override them. A
    variable whose value is None must not be set in the environment.

    Raises `ConfigError` (78) for an unknown feed or target, or if a catalog governs the tables, `StorageError` (74) if the
    ledger cannot be read.
    """
    from rewindow.storage.locations import is_uri, use  # noqa: PLC0415
    from rewindow.tables.delta.warehouse import DeltaTables  # noqa: PLC0415 - parsing a DAG file does not need it

    root = find_project(Path(project).absolute())
    load_feed(root, feed)
    config = load_target(root, target)
    if config.catalog is not None:
        raise ConfigError(
            "sensor-target-governed",
            "the sensor reads the ledger of feed {feed!r} without Spark, but target {target!r} has "
            "`commit: spark`: start the run after the task that lands the feed instead",
            feed=feed,
            target=target,
        )
    warehouse = location_of(root, config.warehouse)
    if is_uri(warehouse):
        use(warehouse, {**_without_mixing(settings or {}), **config.storage_options})
    tables = DeltaTables(warehouse)
    try:
        landings = tables.feed(feed).landings
    except SourceError:
        return None
    return landings[-1].watermark_ms if landings else None


def is_complete(
    project: str, target: str, feed: str, through: str, settings: Mapping[str, str | None] | None = None
) -> bool:
    """Return whether a feed's logs are complete through a time (ISO 8601; a time without a zone is in UTC)."""
    watermark = complete_through(project, target, feed, settings)
    return watermark is not None and watermark >= epoch_ms(through)


def _without_mixing(settings: Mapping[str, str | None]) -> dict[str, str]:
    """Return the settings that have a value. Raises `ConfigError` (78) if the environment sets a variable whose value is None.

    Such a variable can be removed from the environment of a command, but not from this process, because other tasks share it.
    """
    for name, value in settings.items():
        if value is None and os.environ.get(name):
            raise ConfigError(
                "connection-credentials-mixed",
                "the environment sets {variable}, which does not belong to the credentials of the connection: unset it",
                variable=name,
            )
    return {name: value for name, value in settings.items() if value is not None}


def epoch_ms(text: str) -> int:
    """Return an ISO 8601 time in epoch ms. Raises `UsageError` (2) for an invalid time."""
    try:
        parsed = pendulum.parse(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, pendulum.DateTime):
        raise UsageError(
            "airflow-time-invalid", "{given!r} is not a valid time: write it like 2013-02-01T06:00:00Z", given=text
        )
    return round(parsed.timestamp() * 1000)
