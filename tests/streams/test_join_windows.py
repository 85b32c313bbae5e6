"""Join windows: both sides, grace, and the methods that KIP-328 deprecates."""

from __future__ import annotations

import pytest

from rewindow import JoinWindows
from tests.refusals import refused


def test_both_sides_have_the_difference_unless_one_is_set() -> None:
    windows = JoinWindows.of("10s", grace="3s")
    assert (windows.before_ms, windows.after_ms, windows.grace_ms) == (10_000, 10_000, 3_000)
    assert (windows.size_ms, windows.needed_retention_ms, windows.retention_ms) == (20_000, 23_000, 23_000)
    one_sided = windows.before("0s")
    assert (one_sided.before_ms, one_sided.after_ms, one_sided.grace_ms) == (0, 10_000, 3_000)
    assert one_sided.after("1s").after_ms == 1_000


def test_one_side_may_be_negative_but_not_more_than_the_other() -> None:
    later = JoinWindows.of("10s", grace="0s").before("-4s")
    assert (later.before_ms, later.after_ms, later.size_ms, later.holds_ms) == (-4_000, 10_000, 6_000, 10_000)
    assert later.after("4s").size_ms == 0
    with refused("join-window-negative", call="before('-11s')", before="-11s"):
        JoinWindows.of("10s", grace="0s").before("-11s")
    with refused("join-window-negative", call="after('-10001ms')"):
        JoinWindows.of("10s", grace="0s").after("-10001ms")


def test_negative_differences_are_refused() -> None:
    with refused("join-difference-negative"):
        JoinWindows.of("-1s", grace="0s")
    with refused("window-grace-negative"):
        JoinWindows.of("1s", grace="-1s")


def test_the_deprecated_form_without_a_grace_is_eager_and_has_a_day() -> None:
    with pytest.warns(DeprecationWarning, match="name the grace"):
        windows = JoinWindows.of("10s")
    assert (windows.grace_ms, windows.is_eager) == (86_400_000, True)
    assert "eager" in str(windows)


def test_until_is_deprecated_and_sets_the_retention() -> None:
    windows = JoinWindows.of("10s", grace="5s")
    with pytest.warns(DeprecationWarning, match="Materialized"):
        assert windows.until("1m").retention_ms == 60_000
    with pytest.warns(DeprecationWarning, match="Materialized"), refused("join-retention-too-short", minimum="25s"):
        windows.until("24s")
