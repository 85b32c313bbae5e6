"""What makes other rows is in a fingerprint, and nothing else."""

from __future__ import annotations

import pytest

from rewindow.config.fingerprints import feed_fingerprint, semantics_fingerprint
from tests.config.written import ACTIVITY, FEED, LOW_ACTIVITY, feed, feed_with, job


@pytest.mark.parametrize(
    "later_only",
    [{"lag": "5m"}, {"max_task_idle": "forever"}, {"landing": {"max_ahead": "1h"}}, {"zone": "UTC"}],
)
def test_what_holds_for_later_landings_is_not_in_the_fingerprint(tmp_path, later_only):
    assert feed_fingerprint(feed_with(tmp_path, **later_only)) == feed_fingerprint(feed(tmp_path, FEED))


def test_a_watermark_is_not_in_the_fingerprint(tmp_path):
    with_watermark = feed_with(tmp_path, landing={"every": "1h", "watermark": "interval_end"})
    assert feed_fingerprint(with_watermark) == feed_fingerprint(feed_with(tmp_path, landing={"every": "1h"}))


@pytest.mark.parametrize(
    "keys",
    [
        {"partitions": 9},
        {"zone": "Europe/Berlin"},
        {"landing": {"every": "1h"}},
        {"logs": {"events": {"source": {"table": "raw.events"}, "key": ["user_id"], "timestamp": "event_time"}}},
        {"logs": {"events": {"source": {"table": "raw.other"}, "key": "user_id", "timestamp": "event_time"}}},
    ],
)
def test_what_makes_other_landings_is_in_the_fingerprint(tmp_path, keys):
    assert feed_fingerprint(feed_with(tmp_path, **keys)) != feed_fingerprint(feed(tmp_path, FEED))


def test_the_fingerprint_of_a_feed_never_changes_by_itself(tmp_path):
    assert (
        feed_fingerprint(feed(tmp_path, ACTIVITY)) == "01bbbde6a2fad0955feaa4030e7c295bf99080b2e1dcfcaed5bca0e7def03afc"
    )


def test_the_fingerprint_of_semantics_covers_semantics_only(tmp_path):
    plain = job(tmp_path, LOW_ACTIVITY.replace("semantics: {stream_time_from: watermark}", ""))
    spelled_out = job(tmp_path, LOW_ACTIVITY.replace("stream_time_from: watermark", "stream_time: max"))
    other = job(tmp_path, LOW_ACTIVITY)
    assert semantics_fingerprint(plain) == semantics_fingerprint(spelled_out) != semantics_fingerprint(other)
