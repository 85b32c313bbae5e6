"""Which texts are certainly no times: a message may name only those."""

from __future__ import annotations

import pytest

from rewindow.engine.worker.time_texts import Verdict, judge_text


@pytest.mark.parametrize(
    ("text", "form", "verdict"),
    [
        ("05.01.2026 09:15", "dd.MM.yyyy HH:mm", Verdict.TIME),
        ("31.02.2026 09:15", "dd.MM.yyyy HH:mm", Verdict.NONE),
        ("5.1.2026 09:15", "dd.MM.yyyy HH:mm", Verdict.NONE),
        ("5.1.2026", "d.M.yyyy", Verdict.TIME),
        ("n/a", "dd.MM.yyyy HH:mm", Verdict.NONE),
        ("2026-01-05T10:00:00Z", "dd.MM.yyyy HH:mm", Verdict.TIME),
        ("2026-01-05T10:00:00.123+02:00", None, Verdict.TIME),
        ("2026-13-05", None, Verdict.NONE),
        ("2026-1-5", None, Verdict.UNSURE),
        ("10:15", None, Verdict.NONE),
        ("05.01.2026", None, Verdict.NONE),
        ("Jan 5 2026", "MMM d yyyy", Verdict.UNSURE),
        ("20260105T10:15:00.123", "yyyyMMdd'T'HH:mm:ss.SSS", Verdict.TIME),
        ("05/01/2026 +01", "dd/MM/yyyy x", Verdict.UNSURE),
        ("05.01.2026", "dd.MM.yyyy[ HH:mm]", Verdict.UNSURE),
    ],
)
def test_a_text_is_a_time_or_none_or_left_to_spark(text: str, form: str | None, verdict: Verdict) -> None:
    assert judge_text(text, form) is verdict
