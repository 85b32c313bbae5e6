"""The sections on what is not final: open windows, clocks, and stores."""

from __future__ import annotations

from collections.abc import Iterator

from rewindow.report.charts import Span, timeline
from rewindow.report.facts import Report
from rewindow.report.figures import OpenWindow
from rewindow.report.html import Html, code, table, tag, with_code
from rewindow.report.text import DASH, asked, instant, number, size
from rewindow.streams.duration import in_words

_MOST_STEPS = 120
"""More runs than these share steps of a timeline."""
_NAMES = {"STREAM_TIME": "stream time", "WALL_CLOCK_TIME": "wall clock (simulated)"}


def windows_section(report: Report) -> Iterator[Html]:
    """Yield the windows whose results are not final, and why."""
    found = report.open_windows
    for store in found.not_read:
        yield tag(
            "p",
            f"Store {store} was not read: it is large, spread over many runs, behind the ledger, or in a catalog. ",
            *(code(f"rewindow state show {report.job} {store} --branch {report.branch}"), " reads it; "),
            *(code(f"rewindow gc {report.job}"), " merges what many runs wrote."),
        )
    if not found.results:
        if not found.not_read:
            but = ", except what punctuators send" if report.schedules else ""
            yield tag("p", f"No result waits: a final run would emit nothing{but}.")
        return
    results = "1 result is" if found.results == 1 else f"{number(found.results)} results are"
    yield tag(
        "p",
        f"{results} not final. A final run (",
        code(f"rewindow run {asked(report.job, report.branch)} --final"),
        ") would emit them and seal the branch.",
    )
    if not found.shown:
        return
    rows = [
        (
            [tag("div", one.store), tag("div", _window(one), css="soft")],
            instant(one.closes_at_ms),
            number(one.keys),
            ", ".join(map(str, one.partitions)),
            with_code(one.why),
        )
        for one in found.shown
    ]
    more = found.windows - sum(one.waits_for is None for one in found.shown)
    what = "Windows that close first" if found.windows else "Records that wait"
    caption = what + (f"; {number(more)} later ones are not shown" if more else "")
    heads = ("store and window", "closes at", "keys", "partitions", "why it is open")
    yield table(caption, heads, rows, numbers=(2,))


def clocks_section(report: Report) -> Iterator[Html]:
    """Yield the timeline of both clocks, and the schedules."""
    known = [one for one in report.clocks if one.stream_time_ms is not None or one.wall_clock_ms is not None]
    if not known:
        return
    each = -(-len(known) // _MOST_STEPS)
    stream: list[Span] = []
    wall: list[Span] = []
    for track, name, calls in ((stream, "stream_time_ms", "stream_calls"), (wall, "wall_clock_ms", "wall_calls")):
        steps = [(getattr(one, name), getattr(one, calls)) for one in known]
        start = next((to - one.simulated_ms for one in known if (to := getattr(one, name)) is not None), None)
        before: int | None = start
        for at in range(0, len(steps), each):
            part = steps[at : at + each]
            to = next((time for time, _ in reversed(part) if time is not None), None)
            if to is not None:
                track.append(Span(to if before is None else before, to, sum(count for _, count in part)))
                before = to
    title = f"Clocks after each run, and the punctuators that they called: {known[0].run} to {known[-1].run}"
    yield timeline(title, [(_NAMES["STREAM_TIME"], stream), (_NAMES["WALL_CLOCK_TIME"], wall)])
    last = known[-1]
    yield tag(
        "p",
        f"After {last.run}, stream time is {instant(last.stream_time_ms)} and the wall clock {instant(last.wall_clock_ms)}, "
        "in the task that is furthest behind. A step is a run; a bar counts its calls.",
    )
    if report.schedules:
        rows = [
            (
                *(one.node, _NAMES.get(one.clock, one.clock), in_words(one.every_ms), instant(one.due_ms)),
                *(number(one.partitions), number(one.calls)),
            )
            for one in report.schedules
        ]
        heads = ("node", "clock", "every", "next due", "schedules", "calls")
        yield table("Schedules of punctuators", heads, rows, numbers=(4, 5))
    else:
        yield tag("p", "The job schedules no punctuators.", css="soft")


def stores_section(report: Report) -> Iterator[Html]:
    """Yield the sizes of the stores."""
    if not report.stores:
        return
    rows = [
        (one.store, one.kind, number(one.keys), number(one.rows), size(one.bytes), one.last_run or DASH)
        for one in report.stores
    ]
    heads = ("store", "kind", "entries now", "changes written", "bytes written", "last changed by")
    yield table(
        "Stores after the last selected run, and what the selected runs wrote to their changelogs",
        heads,
        rows,
        numbers=(2, 3, 4),
    )


def _window(one: OpenWindow) -> str:
    if one.waits_for is not None:
        return f"records that wait for {one.waits_for}, the last until {instant(one.last_at_ms)}"
    if one.window is None:
        return "until time limit"
    start, end = one.window
    return f"{instant(start)} to {instant(end)}"
