"""`head` and `why` leave out rows of the quarantine that `land --new-generation` has replaced."""

from __future__ import annotations

from typing import Any

from tests.bad_input.scene import Bench, hour
from tests.ingest.local_engine import HOUR, T0
from tests.refusals import told


def test_rows_that_a_later_generation_has_put_into_the_quarantine_again_count_once(bench: Bench) -> None:
    def table(more: str = "") -> dict[str, Any]:
        (shown,) = bench.json(f"head rewindow.quarantine{more}")["tables"]
        return dict(shown)

    bench.edit("conf/feeds/activity.yaml", "timestamp: t,", "timestamp: t, invalid_timestamp: skip,")
    for number in (4, 5):
        untimed = {"user": "zoe", "t": None, "got": T0 + number * HOUR, "x": number}
        bench.rows(f"h{4 + number}", [*hour(number), untimed])
        bench.done("land activity")
    before = table()
    assert (before["count"], before["replaced"]) == (2, 0)
    landings = before["rows"][-1]["landing"]
    for keep, replaced in ((f" --keep {landings - 1}", 1), ("", 3)):
        bench.done(f"land activity --new-generation{keep}")
        after = table()
        assert (after["count"], after["replaced"]) == (2, replaced)
        assert [row["record"] for row in after["rows"]] == [row["record"] for row in before["rows"]]
    of_job = table(" --of counts")
    assert (of_job["count"], of_job["replaced"]) == (0, 0)
    bench.done("rewind counts --to 0", "run counts")
    told(bench.why("totals zoe"), "key-in-quarantine", records="2 rows")
