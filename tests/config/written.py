"""Helpers that write configuration files and load them."""

from __future__ import annotations

from pathlib import Path

import yaml

from rewindow.config.feed import FeedConfig
from rewindow.config.job import JobConfig
from rewindow.config.load import load_feed, load_job

ACTIVITY = """
feed: activity
partitions: 8
landing: {every: 1h, watermark: interval_end, max_ahead: 1h}
logs:
  events: {source: {table: raw.events}, key: user_id, timestamp: event_time, arrived_at: received_at}
"""
LOW_ACTIVITY = """
job: low_activity
topology: jobs.low_activity:build_topology
feed: activity
outputs:
  low-activity-alerts: {table: alerts.low_activity}
semantics: {stream_time_from: watermark}
schedule: "10 * * * *"
"""
LOG = "logs: {events: {source: {table: raw.events}, key: user_id, timestamp: event_time}}\n"
FEED = "feed: activity\npartitions: 8\n" + LOG


def write(root: Path, path: str, text: str) -> Path:
    file = root / "conf" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return root


def feed(tmp_path: Path, text: str) -> FeedConfig:
    return load_feed(write(tmp_path, "feeds/activity.yaml", text), "activity")


def feed_with(tmp_path: Path, **keys: object) -> FeedConfig:
    return feed(tmp_path, yaml.safe_dump({**yaml.safe_load(FEED), **keys}))


def log_with(tmp_path: Path, **keys: object) -> FeedConfig:
    log = {"source": {"table": "raw.events"}, "key": "user_id", "timestamp": "event_time", **keys}
    return feed_with(tmp_path, logs={"events": log})


def job(tmp_path: Path, text: str) -> JobConfig:
    return load_job(write(tmp_path, "jobs/low_activity.yaml", text), "low_activity")
