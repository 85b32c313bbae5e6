"""The dropped records that a row lacks: those of its key and window, each once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rewindow.app.why.fate import Fate
from rewindow.app.why.history import Candidates
from rewindow.app.why.output import Output
from rewindow.app.why.windows import windows_of
from rewindow.engine.worker.provenance.replay import Drop
from rewindow.streams.record import Window
from rewindow.streams.windows.session_sliding import SessionWindows


def missed(output: Output, fate: Fate, window: Window, used: Collection[tuple[str | None, int, int]]) -> list[Drop]:
    """Return the drops of the followed records that a window lacks. ``used``: those that its row is made of.

    Without windows that the code declares, nothing tells which records a session lacks: all that were dropped are returned.
    """
    drops = [one for one in fate.missed([window]) if one.dropped.at not in used]
    windows = windows_of(output)
    if window.is_session and isinstance(windows, SessionWindows):
        return _of_session(window, drops, fate.followed, windows.gap_ms)
    return drops


def _of_session(session: Window, drops: Sequence[Drop], followed: Candidates, gap_ms: int) -> list[Drop]:
    """Return the drops of records that would have made a session longer, or of times within it."""
    timed = []
    for one in drops:
        topic, partition, offset = one.dropped.at
        if (time := followed.get((topic or "", partition), {}).get(offset)) is not None:
            timed.append((one, time))
    times = sorted(time for _, time in timed)
    start_ms, end_ms, _ = session
    for time in reversed(times):
        if start_ms - gap_ms <= time < start_ms:
            start_ms = time
    for time in times:
        if end_ms < time <= end_ms + gap_ms:
            end_ms = time
    return [one for one, time in timed if start_ms <= time <= end_ms]
