"""Sessions in a store: lookup, order, expiry and checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import SessionStore, Window, Windowed, session_store
from rewindow.streams.checkpoint import new_store
from tests.refusals import containing, refused


def session(key: Any, start_ms: int, end_ms: int) -> Windowed:
    return Windowed(key, Window(start_ms, end_ms, is_session=True))


def store(retention: int = 100) -> SessionStore:
    made = new_store(session_store("sessions", retention=f"{retention}ms"))
    assert isinstance(made, SessionStore)
    return made


def filled(*sessions: Windowed, retention: int = 100) -> SessionStore:
    made = store(retention)
    for number, one in enumerate(sessions):
        made.put(one, number)
    return made


def bounds(found: Any) -> list[tuple[Any, int, int]]:
    return [(one.key, one.window.start_ms, one.window.end_ms) for one, _ in found]


def test_sessions_of_a_key_are_found_by_end_then_start() -> None:
    sessions = filled(session("a", 30, 35), session("a", 0, 5), session("b", 0, 5), session("a", 10, 20))
    assert bounds(sessions.fetch("a")) == [("a", 0, 5), ("a", 10, 20), ("a", 30, 35)]
    assert bounds(sessions.find_sessions("a", 5, 30)) == [("a", 0, 5), ("a", 10, 20), ("a", 30, 35)]
    assert bounds(sessions.find_sessions("a", 6, 29)) == [("a", 10, 20)]
    assert bounds(sessions.find_sessions("c", 0, 99)) == []


def test_all_sessions_come_by_end_start_and_key_bytes() -> None:
    sessions = filled(
        session("é", 4, 9), session("b", 4, 9), session("c", 3, 9), session("a", 8, 8), session("a", 9, 12)
    )
    assert bounds(sessions.fetch_all(8, 9)) == [("a", 8, 8), ("c", 3, 9), ("b", 4, 9), ("é", 4, 9)]
    assert bounds(sessions.rows())[-1] == ("a", 9, 12)
    assert len(sessions) == 5


def test_a_session_is_read_replaced_and_removed() -> None:
    sessions = filled(session("a", 1, 2))
    sessions.put(session("a", 1, 2), "new")
    assert sessions.fetch_session("a", 1, 2) == "new"
    assert sessions.find(session("a", 1, 2)) == ("new", 2)
    sessions.put(Windowed("a", Window(1, 2)), None)
    sessions.remove(session("a", 5, 6))
    assert sessions.fetch_session("a", 1, 2) is None
    assert sessions.find(session("a", 1, 2)) is None
    assert bounds(sessions.fetch("a")) == []


def test_writes_during_an_iteration_are_not_seen() -> None:
    sessions = filled(session("a", 1, 2), session("a", 5, 6))
    found = sessions.find_sessions("a", 0, 9)
    sessions.remove(session("a", 5, 6))
    assert len(list(found)) == 2


def test_a_session_expires_a_retention_after_its_end() -> None:
    sessions = filled(session("a", 0, 5), session("b", 8, 14), retention=10)
    assert bounds(sessions.rows()) == [("a", 0, 5), ("b", 8, 14)]
    sessions.put(session("b", 8, 15), 1)
    assert bounds(sessions.fetch("a")) == []
    assert sessions.clock_ms == 15


def test_an_expired_session_is_dropped_counted_and_reported() -> None:
    sessions, lost = filled(session("b", 8, 15), retention=10), []
    sessions.lost = lambda key, value: lost.append((key, value))
    sessions.put(session("a", 0, 5), 7)
    assert lost == [(session("a", 0, 5), 7)]
    assert sessions.expired.total == 1
    assert bounds(sessions.rows()) == [("b", 8, 15)]
    sessions.put(session("a", 0, 6), 7)
    assert sessions.expired.total == 1


def test_a_store_without_retention_expires_sessions_at_once() -> None:
    sessions = filled(session("a", 0, 5), retention=0)
    assert bounds(sessions.rows()) == []
    assert sessions.expired.total == 1


def test_a_checkpoint_has_changes_and_tombstones() -> None:
    sessions = filled(session("b", 1, 2), session("a", 1, 3))
    assert sessions.take_changes() == [(session("a", 1, 3), 1), (session("b", 1, 2), 0)]
    sessions.remove(session("a", 1, 3))
    sessions.put(session("a", 1, 4), 2)
    sessions.put(session("c", 9, 9), 3)
    sessions.remove(session("c", 9, 9))
    assert sessions.take_changes() == [(session("a", 1, 3), None), (session("a", 1, 4), 2)]
    assert sessions.take_changes() == []


def test_expired_sessions_leave_no_tombstones() -> None:
    sessions = filled(session("a", 0, 5), retention=10)
    sessions.take_changes()
    sessions.put(session("a", 6, 6), 1)
    sessions.put(session("b", 50, 50), 2)
    assert sessions.take_changes() == [(session("b", 50, 50), 2)]


def test_a_restored_store_continues() -> None:
    rows = [(session("a", 0, 5), 1), (session("a", 3, 9), 2), (session("b", 7, 8), 3), (session("b", 7, 8), None)]
    sessions = store(retention=10)
    sessions.restore(rows, clock_ms=15)
    assert list(sessions.rows()) == [(session("a", 3, 9), 2)]
    assert sessions.take_changes() == []
    sessions.remove(session("a", 3, 9))
    assert sessions.take_changes() == [(session("a", 3, 9), None)]


def test_mutable_values_are_copied() -> None:
    sessions, value = store(), [1]
    sessions.put(session("a", 0, 5), value)
    value.append(2)
    (found,) = [one for _, one in sessions.fetch("a")]
    found.append(3)
    assert sessions.fetch_session("a", 0, 5) == [1]


@pytest.mark.parametrize("wrong", [(5, 4), (-1, 4), (1.0, 4), (True, 4), (0, None)])
def test_a_session_has_bounds(wrong: tuple[Any, Any]) -> None:
    with refused("session-bounds-invalid"):
        store().put(session("a", *wrong), 1)


def test_a_key_of_another_type_and_an_unsupported_value_are_refused() -> None:
    sessions = filled(session(1, 0, 5))
    with refused("store-key-types-differ", key="True"):
        sessions.put(session(True, 6, 7), 1)
    with refused("value-type-undeclared", type="object") as caught:
        sessions.put(session(1, 6, 7), object())
    assert "store 'sessions'" in str(caught.value)
    with refused("value-type-undeclared", type="frozenset", given=containing("frozenset")):
        store().put(session(frozenset(), 6, 7), 1)


def test_a_retention_is_not_negative() -> None:
    assert session_store("sessions", retention="1h").retention_ms == 3_600_000
    with refused("session-retention-negative"):
        session_store("sessions", retention="-1ms")
