"""The sections on runs: what changed, how branches differ, what runs cost, and the digests of what they wrote."""

from __future__ import annotations

from collections.abc import Iterator

from rewindow.report.charts import Bar, bars, grouped
from rewindow.report.facts import Change, OutputDiff, Replaced, Report
from rewindow.report.figures import RunFigures
from rewindow.report.html import Html, code, table, tag
from rewindow.report.text import (
    DASH,
    counted,
    dated,
    instant,
    number,
    seconds,
    share,
    to_the_second,
    told_holds,
    told_left_out,
)

_MOST_RUNS = 50
_DOES = {
    "execute": "restore the stores, replay the records, write files",
    "stage": "list the files in the journal",
    "audit and commit": "read the files back, append the COMMIT row",
    "publish": "add the files to the tables",
}


def changes_section(report: Report) -> Iterator[Html]:
    """Yield what changed since the run before, and what a promotion replaced."""
    changes = report.changes
    if report.replaced is not None:
        yield from _replaced(report.replaced)
    if changes.since is None:
        if report.replaced is None:
            yield tag("p", "This is the first run: there is nothing to compare it with.")
        return
    last = report.runs[-1].run
    if changes.lines:
        yield tag("p", f"Between {changes.since} and {last}, this changed in the job and in what ran it:")
        yield tag("ul", [tag("li", line) for line in changes.lines])
    else:
        yield tag("p", f"{last} ran the same code, settings and versions as {changes.since}.")
    if changes.accepted:
        yield tag("p", "The run was told to accept:")
        yield tag("ul", [tag("li", line) for line in changes.accepted])
    rows = [(one.what, number(one.before), number(one.now), _moved(one)) for one in changes.figures]
    yield table(
        f"Figures of {last} beside those of {changes.since}",
        ("figure", changes.since, last, "change"),
        rows,
        numbers=(1, 2, 3),
    )


def _replaced(replaced: Replaced) -> Iterator[Html]:
    yield tag(
        "p",
        f"A promotion replaced {replaced.before} by {replaced.now}",
        "." if not replaced.lines else ", which differ:",
    )
    if replaced.lines:
        yield tag("ul", [tag("li", line) for line in replaced.lines])
    rows = [(one.what, number(one.before), number(one.now), _moved(one)) for one in replaced.rows]
    heads = ("output", replaced.before, replaced.now, "change")
    yield table("Rows that they added to each output", heads, rows, numbers=(1, 2, 3))


def diff_section(report: Report) -> Iterator[Html]:
    """Yield a comparison of two branches, if there is one."""
    diff = report.diff
    if diff is None:
        return
    since = f" Both have every run through {diff.shared}." if diff.shared else ""
    if diff.on_hold:
        yield tag("p", "" if diff.extent else "Nothing to compare yet. ", told_holds(diff.on_hold))
    elif not diff.extent:
        yield tag("p", f"{diff.first} and {diff.second} share no epoch that they replayed separately.{since}")
    if diff.left_out:
        yield tag("p", f"{told_left_out(diff.left_out)}.")
    if not diff.extent:
        return
    yield tag("p", f"Compared {diff.extent}, which {diff.first} and {diff.second} replayed separately.{since}")
    if diff.code:
        yield tag("p", f"They ran different code. From {diff.second} to {diff.first}:")
        yield tag("ul", [tag("li", line) for line in diff.code])
    rows = [
        (one.output, *(number(count) for count in (one.equal, one.different, one.only_first, one.only_second)))
        for one in diff.outputs
    ]
    heads = ("output", "equal", "different", f"only in {diff.first}", f"only in {diff.second}")
    yield table("Keys of each output", heads, rows, numbers=(1, 2, 3, 4))
    for one in diff.outputs:
        yield from _samples(one, diff.first, diff.second)


def cost_section(report: Report) -> Iterator[Html]:
    """Yield the time of the runs, and the forecast."""
    cost = report.cost
    timed = [Bar(dated(run), [run.seconds]) for run in report.runs if run.seconds is not None]
    if not timed:
        return
    shown = grouped(timed)
    per = "run" if len(shown) == len(timed) else "group of runs"
    yield bars(f"Seconds from plan to commit, by {per}", shown, ["seconds"])
    speed = (
        f", {counted(round(cost.records / cost.seconds), 'record')} a second" if cost.seconds and cost.records else ""
    )
    yield tag(
        "p",
        f"{counted(cost.runs, 'run')} took {seconds(cost.seconds)} from plan to commit, {seconds(cost.median_seconds)} in the "
        f"median{speed}. Starting the command, landing and publishing are not part of it.",
    )
    yield from _steps(report)
    if cost.fixed_seconds is None or cost.seconds_per_million is None:
        yield tag(
            "p",
            "No forecast: it needs at least three runs of different sizes, of which larger ones clearly took longer.",
        )
        return
    rows = [
        ("a run without records", seconds(cost.fixed_seconds)),
        ("each million records", seconds(cost.seconds_per_million)),
        (f"what waits now ({counted(report.progress.waiting_records, 'record')})", seconds(cost.waiting_seconds)),
        ("all records of the branch in one run", seconds(cost.all_seconds)),
    ]
    yield table("Forecast: a line through records and seconds of the last runs", ("for", "time"), rows, numbers=(1,))


def _steps(report: Report) -> Iterator[Html]:
    """Yield what each step costs, if the tables tell."""
    steps, waiting = report.cost.steps, report.progress.waiting_records
    has_forecast = any(one.waiting_seconds is not None for one in steps)
    if not steps:
        return
    whole = sum(one.seconds for one in steps)
    rows = [
        (
            one.step,
            _DOES.get(one.step, ""),
            seconds(one.median_seconds),
            share(one.seconds, whole),
            *((seconds(one.waiting_seconds),) if has_forecast else ()),
        )
        for one in steps
    ]
    forecast = (f"forecast for the {counted(waiting, 'record')} that wait",) if has_forecast else ()
    yield table(
        f"Cost of each step in {_the_last(max(one.runs for one in steps))}",
        ("step", "what it does", "median", "of the time", *forecast),
        rows,
        numbers=(2, 3, 4) if has_forecast else (2, 3),
    )


def runs_section(report: Report) -> Iterator[Html]:
    """Yield the last runs."""
    last = report.runs[-_MOST_RUNS:]
    rows = [
        (
            f"{run.run} (final)" if run.is_final else run.run,
            _epochs(run),
            number(run.records),
            number(run.rows),
            DASH if run.dropped is None else number(sum(run.dropped.values())),
            instant(run.watermark_ms),
            to_the_second(run.committed_at_ms),
            seconds(run.seconds),
            "changed" if run.changed_code else "",
        )
        for run in reversed(last)
    ]
    heads = ("run", "epochs", "records", "rows", "dropped", "complete through", "committed", "took", "code")
    of_all = f" of {number(len(report.runs))}" if len(last) < len(report.runs) else ""
    newest_first = ", newest first" if len(last) > 1 else ""
    yield table(f"{_the_last(len(last)).capitalize()}{of_all}{newest_first}", heads, rows, numbers=(2, 3, 4, 7))


def digests_section(report: Report) -> Iterator[Html]:
    """Yield what proves that two runs wrote the same."""
    yield tag("p", "Chain of ", report.runs[-1].run, ", which binds it to every earlier run: ", code(report.chain))
    rows = [(one.target, one.table, number(one.rows), code(one.digest)) for one in report.digests]
    yield table(
        f"Rows that {report.runs[-1].run} wrote. Equal rows have equal digests, whatever files and cluster made them",
        ("target", "table", "rows", "digest"),
        rows,
        numbers=(2,),
    )


def _the_last(runs: int) -> str:
    return "the last run" if runs == 1 else f"the last {number(runs)} runs"


def _epochs(run: RunFigures) -> str:
    if run.last_epoch <= run.first_epoch:
        return number(run.first_epoch) if run.last_epoch == run.first_epoch else DASH
    return f"{number(run.first_epoch)} to {number(run.last_epoch)}"


def _samples(one: OutputDiff, first: str, second: str) -> Iterator[Html]:
    if one.samples:
        rows = [(sample.key, _lines(sample.first), _lines(sample.second)) for sample in one.samples]
        apart = one.different + one.only_first + one.only_second
        which = f"{number(len(rows))} of {number(apart)} keys" if len(rows) < apart else "Keys"
        yield table(f"{which} of {one.output} that differ", ("key", first, second), rows)


def _lines(rows: object) -> list[Html]:
    return [tag("div", code(str(row))) for row in (rows if isinstance(rows, list | tuple) else ())] or [
        tag("div", "nothing")
    ]


def _moved(one: Change) -> str:
    if one.before is None or one.now is None or one.before == one.now:
        return ""
    by = one.now - one.before
    if not one.before:
        return f"{by:+,.2f}".rstrip("0").rstrip(".")
    return f"{by / one.before:+.1%}"
