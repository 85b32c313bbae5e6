"""Check feeds and jobs of a project, from one look at each ledger. Nothing is changed. Only tables of a catalog need Spark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from rewindow.app.listing import Looks, names_in
from rewindow.app.project import Project
from rewindow.app.read_ledgers import reading_ledgers
from rewindow.app.status.feeds import check_feed
from rewindow.app.status.findings import Level, Subject
from rewindow.app.status.jobs import check_job
from rewindow.config.load import Kind
from rewindow.config.mistakes import did_you_mean
from rewindow.control.plan.spec import MAIN
from rewindow.errors import RewindowError, UsageError
from rewindow.tables.shared.paths import safe_name


@dataclass(frozen=True, slots=True)
class Overview:
    """The feeds and jobs that were checked at a time, each list with the most urgent first."""

    as_of_ms: int
    feeds: Sequence[Subject]
    jobs: Sequence[Subject]

    @property
    def subjects(self) -> Sequence[Subject]:
        """Feeds and jobs, the most urgent first."""
        return sorted((*self.feeds, *self.jobs), key=_urgency)

    @property
    def is_empty(self) -> bool:
        """Whether there are feeds and none of them was ever landed, as in a warehouse whose path is misspelt."""
        return bool(self.feeds) and all(one.figures["landings"] == 0 for one in self.feeds)

    @property
    def is_well(self) -> bool:
        """Whether nothing was found that somebody has to see to."""
        return all(one.level.is_well for one in chain(self.feeds, self.jobs))


def overview(project: Project, names: Collection[str] = (), branch: str = MAIN) -> Overview:
    """Check the named feeds and jobs, or all. Of a branch other than `main`, all jobs that have it.

    Raises `UsageError` (2) for a name or a branch that does not exist, `ConfigError` (78) if a catalog has the tables and there
    is no Spark session.
    """
    looks = Looks(project)
    feeds, jobs = _selected(project, "feeds", names), _selected(project, "jobs", names)
    _check_known(project, names, {*feeds, *jobs})
    with reading_ledgers(project, feeds, jobs):
        if branch != MAIN:
            jobs = _having(safe_name(branch, "branch"), jobs, names, looks)
        return Overview(
            looks.now_ms,
            sorted((check_feed(project, name, looks) for name in feeds), key=_urgency),
            sorted((check_job(project, name, branch, looks) for name in jobs), key=_urgency),
        )


def _urgency(subject: Subject) -> tuple[int, int, str, str]:
    return list(Level).index(subject.level), -len(subject.findings), subject.kind, subject.name


def _selected(project: Project, kind: Kind, names: Collection[str]) -> list[str]:
    return [name for name in names_in(project.root, kind) if not names or name in names]


def _check_known(project: Project, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            feeds, jobs = names_in(project.root, "feeds"), names_in(project.root, "jobs")
            message = (
                f"there is no job or feed {name!r}: {did_you_mean(name, [*jobs, *feeds])}jobs are "
                f"{', '.join(jobs) or 'none'}, feeds are {', '.join(feeds) or 'none'}"
            )
            raise UsageError(message)


def _having(branch: str, jobs: Sequence[str], names: Collection[str], looks: Looks) -> list[str]:
    """Return the jobs that have an open branch. One whose ledger cannot be read is kept, so that it is reported."""
    found = []
    for name in jobs:
        try:
            has_branch = branch in looks.job(name).branches and looks.job(name).branch(branch).is_open
        except RewindowError:
            has_branch = True
        if has_branch:
            found.append(name)
        elif name in names:
            message = f"job {name!r} has no open branch {branch!r}: `rewindow branch list {name}` shows its branches"
            raise UsageError(message)
    if not found:
        message = f"no job has an open branch {branch!r}: `rewindow branch list JOB` shows the branches of a job"
        raise UsageError(message)
    return found
