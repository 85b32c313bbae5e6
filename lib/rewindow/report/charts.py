"""The charts of a report, as static SVG. The page's style sheet sets their colours for light and dark screens and for print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import svg
from markupsafe import Markup

from rewindow.control.health.late_and_dropped_records import Lateness
from rewindow.control.health.phrases import counted
from rewindow.report.report_facts import Clocks, Report, RunFigures
from rewindow.report.text import dated, day, number
from rewindow.streams.duration import in_words
from rewindow.streams.metrics import DROPS

WIDTH, HEIGHT = 720, 210
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 22, 34
MOST_BARS = 90
"""The maximum number of bars in a chart. If there are more values, groups of equal size are added up."""
MOST_STEPS = 120
"""The maximum number of steps in a timeline. If there are more runs, several runs share a step."""
WIDEST_BAR = 70
_ROOM_FOR_TIMES = 330
"""If all bars together are narrower than this (pixels), the labels below them show names without times."""
CLOCKS = {"STREAM_TIME": "stream time", "WALL_CLOCK_TIME": "wall clock (simulated)"}
"""The name of each type of clock."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its label, and the values of its parts from the bottom to the top."""

    label: str
    parts: Sequence[float]


@dataclass(frozen=True, slots=True)
class Span:
    """How far a clock advanced in one run (or several), and how many times it called punctuators."""

    from_ms: int
    to_ms: int
    calls: int


def records_chart(report: Report) -> Markup:
    """Return a chart of the number of records that each run processed."""
    groups = grouped([Bar(dated(run), [run.records]) for run in report.runs])
    per = _per(groups, report.runs)
    return bars(f"Records taken by each {per}: {number(report.progress.records)} in all", groups, ["records"])


def drops_chart(report: Report, detailed: Sequence[RunFigures]) -> Markup:
    """Return a chart of the records that each run dropped, by kind. ``detailed``: the runs whose dropped records are known."""
    kinds = [kind for kind in DROPS.values() if any(drop.kind == kind for drop in report.drops)]
    groups = grouped([Bar(dated(run), [(run.dropped or {}).get(kind, 0) for kind in kinds]) for run in detailed])
    per = _per(groups, detailed)
    title = f"Dropped records by {per} and kind" if len(kinds) > 1 else f"Dropped records by {per}: {kinds[0]}"
    return bars(title, groups, kinds)


def seconds_chart(report: Report) -> Markup:
    """Return a chart of the seconds that each run took."""
    timed = [Bar(dated(run), [run.seconds]) for run in report.runs if run.seconds is not None]
    groups = grouped(timed)
    return bars(f"Seconds from plan to commit, by {_per(groups, timed)}", groups, ["seconds"])


def lateness_chart(node: Lateness) -> Markup:
    """Return a chart of the grace periods that a node's records need, with a mark at the node's own grace period."""
    values = [
        Bar("more" if bucket.up_to_ms is None else in_words(bucket.up_to_ms), [bucket.records])
        for bucket in node.buckets
    ]
    mark = None
    if node.grace_ms is not None:
        grace_ms = node.grace_ms
        below = sum(bucket.up_to_ms is not None and bucket.up_to_ms <= grace_ms for bucket in node.buckets)
        mark = (below, f"grace {in_words(grace_ms)}")
    title = f"Records that came after the end of their window, by the grace that keeps them ({node.node})"
    return bars(title, values, ["records"], mark=mark, every=True)


def timed_clocks(clocks: Sequence[Clocks]) -> list[Clocks]:
    """Return the clocks of those runs after which stream time or the wall clock is known."""
    return [run for run in clocks if run.stream_time_ms is not None or run.wall_clock_ms is not None]


def clocks_chart(clocks: Sequence[Clocks]) -> Markup:
    """Return a timeline of stream time and the wall clock."""
    title = f"Clocks after each run, and the punctuators that they called: {clocks[0].run} to {clocks[-1].run}"
    stream = [(run.stream_time_ms, run.stream_calls) for run in clocks]
    wall = [(run.wall_clock_ms, run.wall_calls) for run in clocks]
    tracks = [_track(steps, [run.simulated_ms for run in clocks]) for steps in (stream, wall)]
    return timeline(title, list(zip(CLOCKS.values(), tracks, strict=True)))


def _track(steps: Sequence[tuple[int | None, int]], simulated_ms: Sequence[int]) -> list[Span]:
    """Return the steps of a clock, at most `MOST_STEPS`.

    ``steps``: for each run, the clock's time after the run and the number of its calls. ``simulated_ms``: the time that each run
    simulated.
    """
    each = -(-len(steps) // MOST_STEPS)
    timed = zip(steps, simulated_ms, strict=True)
    before = next((time - simulated for (time, _), simulated in timed if time is not None), None)
    track = []
    for index in range(0, len(steps), each):
        group = steps[index : index + each]
        last = next((time for time, _ in reversed(group) if time is not None), None)
        if last is not None:
            track.append(Span(last if before is None else before, last, sum(calls for _, calls in group)))
            before = last
    return track


def _per(groups: Sequence[Bar], runs: Sequence[object]) -> str:
    return "run" if len(groups) == len(runs) else "group of runs"


def grouped(bars: Sequence[Bar]) -> list[Bar]:
    """Return at most `MOST_BARS` bars. If there are more, neighbouring bars are added up."""
    each = -(-len(bars) // MOST_BARS) or 1
    groups = [bars[index : index + each] for index in range(0, len(bars), each)]
    return [
        group[0]
        if len(group) == 1
        else Bar(
            f"{group[0].label} to {group[-1].label}",
            [sum(parts) for parts in zip(*(b.parts for b in group), strict=True)],
        )
        for group in groups
    ]


def bars(
    title: str, values: Sequence[Bar], names: Sequence[str], *, mark: tuple[int, str] | None = None, every: bool = False
) -> Markup:
    """Return a bar chart. ``names``: the names of the parts of a bar.

    ``every``: label all bars, not only the first and the last.

    ``mark``: a number of bars and a text. A dashed line with this text is drawn after so many bars.
    """
    drawn: list[svg.Element] = []
    top = _nice(max((sum(bar.parts) for bar in values), default=0))
    room, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    drawn += _axis(top, height)
    step = min(room / max(1, len(values)), WIDEST_BAR)
    for index, bar in enumerate(values):
        x, base = LEFT + index * step, float(TOP + height)
        counts = ", ".join(f"{name} {number(_rounded(part))}" for name, part in zip(names, bar.parts, strict=True))
        parts: list[svg.Element] = [svg.Title(text=escape(f"{bar.label}: {counts}"))]
        for series, part in enumerate(bar.parts):
            tall = height * part / top
            if part:
                base -= max(tall, 1.0)
                parts.append(_box(x + step * 0.08, base, step * 0.84, max(tall, 1.0), f"series-{series}"))
        drawn.append(svg.G(elements=parts))
        if every:
            drawn.append(_text(x + step / 2, TOP + height + 14, bar.label, "middle"))
    if values and not every:
        ends = [values[0].label.partition(" to ")[0], values[-1].label.rpartition(" to ")[2]]
        if step * len(values) < _ROOM_FOR_TIMES:
            ends = [end.partition(" (")[0] for end in ends]
        drawn.append(_text(LEFT, TOP + height + 14, ends[0], "start"))
        if len(values) > 1:
            drawn.append(_text(LEFT + step * len(values), TOP + height + 14, ends[1], "end"))
    if mark is not None:
        x = LEFT + mark[0] * step
        drawn.append(svg.Line(x1=x, x2=x, y1=TOP - 8, y2=TOP + height, class_=["mark"]))
        is_right = mark[0] > len(values) * 0.6
        drawn.append(_text(x - 5 if is_right else x + 5, TOP, mark[1], "end" if is_right else "start", "mark-text"))
    return _figure(title, drawn, names if len(names) > 1 else ())


def timeline(title: str, clocks: Sequence[tuple[str, Sequence[Span]]]) -> Markup:
    """Return a timeline with a track for each clock.

    In a track, each run has a step, and a bar for its calls of punctuators.
    """
    spans = [span for _, track in clocks for span in track]
    if not spans:
        return Markup("")
    first, last = min(span.from_ms for span in spans), max(span.to_ms for span in spans)
    whole = max(1, last - first)
    x_of = _scale(first, whole)
    drawn: list[svg.Element] = []
    base = float(HEIGHT - BOTTOM)
    for step in range(5):
        time = first + whole * step // 4
        anchor = "start" if step == 0 else "end" if step == 4 else "middle"
        drawn.append(svg.Line(x1=x_of(time), x2=x_of(time), y1=TOP, y2=base, class_=["grid"]))
        drawn.append(_text(x_of(time), base + 14, day(time, whole), anchor))
    tall = (HEIGHT - TOP - BOTTOM) / len(clocks)
    for row, (name, track) in enumerate(clocks):
        base = TOP + tall * (row + 1) - 12
        most = max((span.calls for span in track), default=0)
        drawn.append(_text(LEFT, base - tall + 20, f"{name}: {_calls(track)}", "start"))
        for index, span in enumerate(track):
            x, wide = x_of(span.from_ms), max(1.0, x_of(span.to_ms) - x_of(span.from_ms))
            parts: list[svg.Element] = [
                svg.Title(text=escape(f"{day(span.from_ms, 0)} to {day(span.to_ms, 0)}: {number(span.calls)} calls")),
                _box(x, base, wide, 8, f"step-{index % 2}"),
            ]
            if span.calls:
                high = max(2.0, (tall - 40) * span.calls / most)
                parts.append(_box(x, base - high - 1, max(1.0, wide - 1), high, f"series-{row}"))
            drawn.append(svg.G(elements=parts))
    return _figure(title, drawn, ())


def _calls(track: Sequence[Span]) -> str:
    """Return how often a clock called punctuators, in total and at most in one step."""
    whole, most = sum(span.calls for span in track), max((span.calls for span in track), default=0)
    if not whole:
        return "no calls"
    return counted(whole, "call") + (f", at most {number(most)} in one step" if len(track) > 1 else "")


def _figure(title: str, drawn: list[svg.Element], names: Sequence[str]) -> Markup:
    """Return a drawing with a legend, and with a title for screen readers."""
    legend: list[svg.Element] = []
    x = float(WIDTH - RIGHT)
    for series, name in reversed(list(enumerate(names))):
        x -= 7 * len(name) + 8
        legend.append(_text(x, HEIGHT - 4, name, "start"))
        x -= 14
        legend.append(_box(x, HEIGHT - 13, 10, 10, f"series-{series}"))
    drawing = svg.SVG(
        viewBox=svg.ViewBoxSpec(0, 0, WIDTH, HEIGHT),
        class_=["chart"],
        elements=[svg.Title(text=escape(title)), *drawn, *legend],
        extra={"role": "img", "aria-label": escape(title)},
    )
    drawn_svg = Markup(drawing.as_str())  # noqa: S704 - every text of it is escaped
    return Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(drawn_svg, title)


def _axis(top: float, height: float) -> list[svg.Element]:
    drawn: list[svg.Element] = []
    for step in range(5):
        y = TOP + height * (1 - step / 4)
        drawn.append(svg.Line(x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_=["grid"]))
        drawn.append(_text(LEFT - 6, y + 4, _short(top * step / 4), "end"))
    return drawn


def _scale(first: int, whole: int) -> Callable[[int], float]:
    return lambda time: round(LEFT + (WIDTH - LEFT - RIGHT) * (time - first) / whole, 2)


def _box(x: float, y: float, width: float, height: float, css: str) -> svg.Rect:
    return svg.Rect(x=round(x, 2), y=round(y, 2), width=round(width, 2), height=round(height, 2), class_=[css])


def _text(x: float, y: float, text: str, anchor: str, css: str = "label") -> svg.Text:
    return svg.Text(x=round(x, 2), y=round(y, 2), text=escape(text), class_=[css], extra={"text-anchor": anchor})


def _nice(most: float) -> float:
    """Return the end of an axis: 1, 2, 4 or 8 times a power of ten, so that its quarters are round numbers."""
    if most <= 0:
        return 4.0
    power = 10.0 ** (len(str(int(most))) - 1) if most >= 1 else 0.01
    while True:
        for factor in (1, 2, 4, 8):
            if factor * power >= most:
                return factor * power
        power *= 10


def _short(value: float) -> str:
    for bound, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= bound:
            return f"{value / {'G': 1e9, 'M': 1e6, 'k': 1e3}[unit]:g}{unit}"
    return f"{value:g}"


def _rounded(value: float) -> float:
    return int(value) if float(value).is_integer() else round(value, 2)
