"""`Materialized`: names, retention independent of grace (KIP-328), and given stores."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import Materialized, StoreBuilder, StreamsBuilder, TimeWindows, key_value_store, window_store
from rewindow.streams.metrics import EXPIRED_WINDOW_DROP
from rewindow.testing import TopologyTestDriver
from tests.refusals import Refusal, refused

WINDOWS = TimeWindows.of("10ms", grace="5ms")


def counting(store: Any, windows: TimeWindows = WINDOWS) -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(windows).count(store=store).to_stream().to("out")
    return builder


def kept(store: Any, windows: TimeWindows = WINDOWS) -> StoreBuilder:
    return counting(store, windows).build().stores["counts"]


def test_a_store_retains_windows_while_they_can_change() -> None:
    assert kept("counts").retention_ms == 15
    assert kept(Materialized.as_("counts")) == kept("counts")


def test_a_longer_retention_retains_windows_longer() -> None:
    assert kept(Materialized.as_("counts", retention="1d")).retention_ms == 86_400_000
    assert kept(Materialized.as_("counts").with_retention("20ms")).retention_ms == 20


def test_a_retention_that_is_too_short_is_rejected() -> None:
    assert kept(Materialized.as_("counts", retention="15ms")).retention_ms == 15
    with refused("store-retention-too-short", store="counts", retention="14ms", minimum="15ms"):
        counting(Materialized.as_("counts", retention="14ms"))


def test_a_table_without_windows_ignores_a_retention() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(store=Materialized.as_("counts", retention="1ms"))
    assert builder.build().stores["counts"].retention_ms == 0


def test_a_ready_made_store_keeps_its_own_options() -> None:
    ready = window_store("counts", size="10ms", retention="40ms", key=str)
    store = kept(ready)
    assert (store.retention_ms, store.key, store.value, store.is_stamped) == (40, str, int, True)
    assert kept(Materialized.as_(ready)) == store
    assert kept(ready, WINDOWS.__class__.of("10ms", grace="0s")).retention_ms == 40
    with refused("ready-made-store-retention"):
        Materialized.as_(ready, retention="1d")


@pytest.mark.parametrize(
    ("ready", "refusal"),
    [
        (
            window_store("counts", size="10ms", retention="14ms"),
            refused("store-retention-too-short", retention="14ms", minimum="15ms"),
        ),
        (
            window_store("counts", size="9ms", retention="1d"),
            refused("store-window-size-differs", store_size="9ms", size="10ms"),
        ),
        (key_value_store("counts"), refused("store-kind-wrong")),
    ],
)
def test_a_ready_made_store_of_another_kind_is_rejected(ready: StoreBuilder, refusal: Refusal) -> None:
    with refusal:
        counting(ready)


def test_a_ready_made_store_works_without_windows() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(store=key_value_store("counts", key=str)).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "a", 1, 7)
    driver.cut()
    driver.pipe("in", "a", 1, 5)
    assert [(record.value, record.timestamp) for record in driver.read("out")] == [(1, 7), (2, 7)]


def test_until_is_deprecated_and_sets_the_retention() -> None:
    with pytest.warns(DeprecationWarning, match="Materialized"):
        windows = WINDOWS.until("1h")
    assert kept("counts", windows.advance_by("5ms")).retention_ms == 3_600_000
    assert kept(Materialized.as_("counts", retention="1d"), windows).retention_ms == 86_400_000
    with pytest.warns(DeprecationWarning, match="KIP-328"), refused("window-retention-too-short", minimum="15ms"):
        WINDOWS.until("14ms")


def test_retention_closes_no_window() -> None:
    driver = TopologyTestDriver(counting(Materialized.as_("counts", retention="1d")).build())
    for timestamp in (5, 14, 15, 5):
        driver.pipe("in", "a", 1, timestamp)
    assert [record.value for record in driver.read("out")] == [1, 1, 2]
    assert len(driver.store("counts")) == 2
    assert not [row for row in driver.metrics if row["name"] == EXPIRED_WINDOW_DROP]
