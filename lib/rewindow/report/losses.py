"""The sections on records that did not get into results: dropped ones, and how late records are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from rewindow.app.api.show import table
from rewindow.report.charts import Bar, bars, grouped
from rewindow.report.facts import Report
from rewindow.report.figures import Bucket, Lateness
from rewindow.report.html import Html, tag
from rewindow.report.text import DASH, counted, dated, number, see_quarantined, share, span
from rewindow.streams.duration import in_words
from rewindow.streams.metrics import _GRACE_BOUNDS_MS

_MEANING = {
    "late": "its window was closed",
    "skipped": "it had no key, value or time that the node needs",
    "expired": "the store had already dropped its window or version",
    "quarantined": "`{see}` says why",
}


def dropped_section(report: Report) -> Iterator[Html]:
    """Yield the records taken and dropped, over time and by reason."""
    taken = grouped([Bar(dated(run), [run.records]) for run in report.runs])
    per = "run" if len(taken) == len(report.runs) else "group of runs"
    yield bars(f"Records taken by each {per}: {number(report.progress.records)} in all", taken, ["records"])
    detailed = [run for run in report.runs if run.dropped is not None]
    if len(detailed) < len(report.runs):
        yield tag(
            "p",
            f"Drops and lateness are those of the last {number(len(detailed))} of {number(len(report.runs))} runs; "
            "name fewer runs with --since, or one with --run.",
            css="soft",
        )
    if not report.drops:
        yield tag("p", "They dropped no record." if len(detailed) < len(report.runs) else "No record was dropped.")
        return
    kinds = [kind for kind in _MEANING if any(drop.kind == kind for drop in report.drops)]
    over_time = grouped([Bar(dated(run), [(run.dropped or {}).get(kind, 0) for kind in kinds]) for run in detailed])
    by = "run" if len(over_time) == len(detailed) else "group of runs"
    what = f"Dropped records by {by} and kind" if len(kinds) > 1 else f"Dropped records by {by}: {kinds[0]}"
    yield bars(what, over_time, [*kinds])
    see = see_quarantined(report.job)
    rows = [
        (
            *(drop.kind, drop.where, drop.reason, number(drop.records)),
            *(DASH if drop.share is None else share(drop.share, 1), _MEANING[drop.kind].format(see=see)),
        )
        for drop in report.drops
    ]
    heads = ("kind", "where", "reason", "drops", "of the records", "because")
    yield table("Dropped records by reason", heads, rows, numbers=(3, 4))
    yield tag(
        "p", "A record counts once for each window that it is late for, and in each node that drops it.", css="soft"
    )


def lateness_section(report: Report) -> Iterator[Html]:
    """Yield, for each windowed node, the grace that its records needed."""
    for one in report.lateness:
        yield tag("h3", f"{one.node} ({one.windows})")
        yield tag("p", _told(one))
        if one.buckets:
            yield _chart(one)
            yield _kept(one)


def _told(one: Lateness) -> str:
    behind = f"on average {span(one.mean_ms)} and at most {span(one.largest_ms, at_most=True)} behind its clock"
    if not one.largest_ms:
        behind = "all in order"
    if not one.buckets:
        return (
            f"{counted(one.records, 'record')}, {behind}. None came after the end of its window: any grace keeps all."
        )
    return (
        f"{counted(one.records, 'record')}, {behind}. {share(one.in_time, one.records)} came before their window ended. "
        f"A grace of {span(one.needed_ms, at_most=True)} keeps every record; "
        f"{'none was' if not one.late else '1 was' if one.late == 1 else f'{number(one.late)} were'} late"
        f"{f' with the grace of {in_words(one.grace_ms)}' if one.grace_ms is not None else ''}."
    )


def _chart(one: Lateness) -> Html:
    values = [Bar(_bound(bucket), [bucket.records]) for bucket in one.buckets]
    mark = None
    if one.grace_ms is not None:
        grace = one.grace_ms
        below = sum(bucket.up_to_ms is not None and bucket.up_to_ms <= grace for bucket in one.buckets)
        mark = (below, f"grace {in_words(grace)}")
    title = f"Records that came after the end of their window, by the grace that keeps them ({one.node})"
    return bars(title, values, ["records"], mark=mark, every=True)


def _kept(one: Lateness) -> Html:
    """Return what each grace would have kept."""
    up_to = list(accumulate([one.in_time, *(bucket.records for bucket in one.buckets)]))
    bounds = [0, *(one.needed_ms if bucket.up_to_ms is None else bucket.up_to_ms for bucket in one.buckets)]
    kept_with = dict(zip(bounds, up_to, strict=True))
    if one.grace_ms is not None and one.counts_records:
        kept_with[one.grace_ms] = one.records - one.late
    elif one.grace_ms in _GRACE_BOUNDS_MS:
        kept_with[one.grace_ms] = max(kept for bound, kept in kept_with.items() if bound <= one.grace_ms)
    rows = [
        (
            f"{span(grace, at_most=True) if grace else 'none'}{' (this job)' if grace == one.grace_ms else ''}",
            share(kept, one.records),
            number(one.records - kept),
        )
        for grace, kept in sorted(kept_with.items())
    ]
    # A record that is kept can make a session longer for others.
    least = "at least so many, " if one.windows.startswith("gap ") else ""
    return table(
        f"With this grace you would have kept, {least}in at least their last window",
        ("grace", "kept", "dropped"),
        rows,
        numbers=(0, 1, 2),
    )


def _bound(bucket: Bucket) -> str:
    return "more" if bucket.up_to_ms is None else in_words(bucket.up_to_ms)
