"""Charts of series against the number of runs, with their lines, as SVG."""

from __future__ import annotations

from collections.abc import Sequence

import svg

from tests.year.judge import Judged

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 260, 64, 130, 30, 34
COLOURS = ("#2a6f97", "#c8553d", "#588157", "#8d5b9b", "#b8860b", "#444444", "#00a6a6", "#d06fa0")
TICKS = 4
_FONT = "font-family:sans-serif;font-size:12px"


def chart(title: str, judged: Sequence[Judged]) -> str:
    """Return a chart of some series: each value as a dot, each line of least squares as a line."""
    most_x = max(x for one in judged for x, _ in one.series.points)
    most_y = max(y for one in judged for _, y in one.series.points) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        across, up = (WIDTH - LEFT - RIGHT) * x / most_x, (HEIGHT - TOP - BOTTOM) * y / most_y
        return round(LEFT + across, 1), round(HEIGHT - BOTTOM - up, 1)

    drawn: list[svg.Element] = [
        svg.Rect(width=WIDTH, height=HEIGHT, fill="white"),
        svg.Text(x=8, y=18, font_weight="bold", text=title),
        svg.Text(x=WIDTH - RIGHT, y=HEIGHT - 4, text_anchor="end", text="runs"),
    ]
    for number in range(TICKS + 1):
        value, runs = most_y * number / TICKS, most_x * number / TICKS
        left, height = at(0, value)
        drawn += [
            svg.Line(x1=left, y1=height, x2=WIDTH - RIGHT, y2=height, stroke="#dddddd"),
            svg.Text(x=left - 6, y=height + 4, text_anchor="end", text=_short(value)),
            svg.Text(x=at(runs, 0)[0], y=HEIGHT - BOTTOM + 16, text_anchor="middle", text=f"{runs:,.0f}"),
        ]
    for number, one in enumerate(judged):
        colour = COLOURS[number % len(COLOURS)]
        for point in one.series.points:
            x, y = at(*point)
            drawn.append(svg.Circle(cx=x, cy=y, r=1.8, fill=colour, fill_opacity=0.5))
        ends = [at(x, max(0.0, one.fit.at(x))) for x in (one.fit.first, one.fit.last)]
        drawn += [
            svg.Line(x1=ends[0][0], y1=ends[0][1], x2=ends[1][0], y2=ends[1][1], stroke=colour, stroke_width=1.5),
            svg.Text(x=WIDTH - RIGHT + 10, y=TOP + 14 + 17 * number, fill=colour, text=one.series.name),
        ]
    made = svg.SVG(width=WIDTH, height=HEIGHT, style=_FONT, elements=drawn)
    return f"{made}\n"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 else f"{value:.2g}"
