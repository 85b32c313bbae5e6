"""The runs that the last promotion of a branch replaced, next to those that came instead."""

from __future__ import annotations

from collections.abc import Sequence

from rewindow.control.plan.branches import CommittedRun, Publication
from rewindow.control.plan.job_diff import differences_besides_tables
from rewindow.control.plan.spec import OUTPUT
from rewindow.report.facts import Change, Replaced
from rewindow.report.material import Material
from rewindow.report.run_totals import rows_of

_MOST_PUBLICATIONS = 1000
"""A promotion with more publications after it is not looked for."""


def replaced(material: Material) -> Replaced | None:
    """Return what the last promotion replaced, as far as its runs are among the report's; None without one."""
    found = _last_promotion(material)
    if found is None or not {run.spec.run for run in found.adds} & {run.spec.run for run in material.runs}:
        return None
    old, new = found.removes[-1], found.adds[-1]
    targets = {target for run in (old, new) for target in run.spec.binding.tables if target.startswith(OUTPUT)}
    outputs = sorted(target.removeprefix(OUTPUT) for target in targets)
    rows_before, rows_now = rows_of(found.removes), rows_of(found.adds)
    return Replaced(
        before=_named(found.removes),
        now=_named(found.adds),
        lines=differences_besides_tables(old.spec.binding, new.spec.binding),
        rows=[Change(output, rows_before[output], rows_now[output]) for output in outputs],
    )


def _last_promotion(material: Material) -> Publication | None:
    publications = material.branch.publications
    for index in range(len(publications) - 1, max(len(publications) - _MOST_PUBLICATIONS, 0) - 1, -1):
        one = publications[index]
        if one.adds and one.removes:
            return one
    return None


def _named(runs: Sequence[CommittedRun]) -> str:
    first, last = runs[0].spec.name, runs[-1].spec.name
    return first if first == last else f"{first} to {last}"
