"""What `why` says of records without a key, which have no row where a job groups, aggregates or joins by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewindow.app.hints import above
from rewindow.app.project import Project
from rewindow.app.why.facts import Missing, MissingFacts, no_answer
from rewindow.app.why.key_form import example, is_landed
from rewindow.app.why.output import Output
from rewindow.config.load import load_job
from rewindow.report.material import DETAILED_RUNS
from rewindow.report.text import keep_dropped, see_quarantined
from rewindow.streams.metrics import SKIPPED_RECORDS, sum_by_reason

_MOST_RUNS = 5
_NO_KEY = (None, "", "null", '""')


def null_key(key: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]] | None:
    """Return a key of nulls if the words of a key mean none, None for any other key.

    Operators that take records without a key, like a join that keeps them, send rows with such a key.
    """
    return {name: [None] for name in key} if _means_none(key) else None


def without_key(project: Project, output: Output, key: Mapping[str, Sequence[Any]]) -> MissingFacts | None:
    """Return what became of records without a key, if the words of a key mean none: it is empty or `null`.

    None for any other key, if a record has these words as its key, and if there is no run yet.
    """
    is_text = any(values[0] is not None for values in key.values())
    if not _means_none(key) or output.branch.head is None or (is_text and is_landed(output, key)):
        return None
    skipped = list(_skipped(output))
    total, name, runs_known = sum(count for _, count in skipped), output.job.name, len(output.branch.runs)
    last = f" in the last {DETAILED_RUNS} of {runs_known:,} runs" if runs_known > DETAILED_RUNS else ""
    if not total:
        headline = f"no run of {name} has skipped a record without a key{last}"
        return no_answer(output, Missing.NO_KEY, headline, [_written(output)])
    are, them = ("record without a key was", "it") if total == 1 else ("records without a key were", "them")
    runs = ", ".join(f"{count:,} in run {run}" for run, count in skipped[-_MOST_RUNS:])
    more = f", the last {_MOST_RUNS} of {len(skipped):,} runs" if len(skipped) > _MOST_RUNS else ""
    reasons = [
        f"Where {name} groups, aggregates or joins by key, it skips records without a key: {runs}{more}",
        _how_to_see(project, name),
        _written(output),
    ]
    return no_answer(
        output, Missing.NO_KEY, f"{total:,} {are} skipped{last}, so {output.table} has no row of {them}", reasons
    )


def _means_none(key: Mapping[str, Sequence[Any]]) -> bool:
    return all(values[0] in _NO_KEY or "null" in values for values in key.values())


def _skipped(output: Output) -> Iterator[tuple[str, int]]:
    """Yield the last runs of the branch that skipped records without a key on the way to the output, and how many."""
    nodes = {node.name for node in above(output.layout.topology, output.layout.sink)}
    for run in output.branch.runs[-DETAILED_RUNS:]:
        rows = [row for report in output.tables.reports(run) for row in report.metrics if row["node"] in nodes]
        if count := sum_by_reason(rows, SKIPPED_RECORDS).get("null-key", 0):
            yield run.spec.name, count


def _how_to_see(project: Project, job: str) -> str:
    if load_job(project.root, job).dropped == "quarantine":
        return f"See them: `{see_quarantined(job)}`"
    return keep_dropped(job)


def _written(output: Output) -> str:
    columns = " ".join(f"{column.name}=VALUE" for column in output.own_columns)
    return f"A key is written {columns}{example(output)}"
