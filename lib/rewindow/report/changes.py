"""What changed since the run before: code, settings, versions and figures."""

from __future__ import annotations

from collections.abc import Iterator

from rewindow.control.plan.branches import CommittedRun
from rewindow.control.plan.job_diff import differences_besides_tables
from rewindow.control.plan.spec import CHANGELOG
from rewindow.report.drops import count_drops
from rewindow.report.facts import Change, Changes
from rewindow.report.material import Material, records_of, rows_of


def changes(material: Material) -> Changes:
    """Return how the head differs from the run before it."""
    head, before = material.head, material.before
    if before is None:
        return Changes(None, (), head.spec.accepted, ())
    lines = [*differences_besides_tables(before.spec.binding, head.spec.binding), *_versions(before, head)]
    return Changes(before.spec.name, lines, head.spec.accepted, list(_figures(material, before)))


def _versions(before: CommittedRun, now: CommittedRun) -> Iterator[str]:
    old, new = before.spec.attempt.versions, now.spec.attempt.versions
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield f"{name}: {old.get(name, 'none')} -> {new.get(name, 'none')}"
    if before.spec.input.generation != now.spec.input.generation:
        yield f"generation of the feed: {before.spec.input.generation} -> {now.spec.input.generation}"


def _figures(material: Material, before: CommittedRun) -> Iterator[Change]:
    now = material.head
    yield Change("records", records_of(before), records_of(now))
    yield Change("rows added to outputs", rows_of(before), rows_of(now))
    reports = material.reports.get(before.spec.run) or material.read_reports(before)
    old, new = count_drops(reports), count_drops(material.reports[now.spec.run])
    for kind in new:
        if old[kind] or new[kind]:
            yield Change(f"{kind} records", old[kind], new[kind])
    yield Change("changelog rows", _changelog(before), _changelog(now))
    yield Change(
        "results that wait in suppress buffers", sum(before.commit.held.values()), sum(now.commit.held.values())
    )
    yield Change("seconds from plan to commit", material.seconds_of(before), material.seconds_of(now))


def _changelog(run: CommittedRun) -> int:
    return sum(total.rows for target, total in run.commit.targets.items() if target.startswith(CHANGELOG))
