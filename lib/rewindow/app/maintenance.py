"""Maintenance of jobs and feeds: republish drifted tables, resume an unfinished run, start over, collect garbage."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from rewindow.app.clean_up import no_run_reads
from rewindow.app.open_project import OpenProject
from rewindow.app.removed_runs import outdated_readers
from rewindow.app.run_references import check_has_branch, run_first, without_options
from rewindow.app.telemetry.telemetry import OnStep
from rewindow.config.load import load_feed
from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.contracts.tasks import SubTopologyWork
from rewindow.control.branch import reset
from rewindow.control.drift_repair import Republished, RepublishRequest, republish
from rewindow.control.garbage_collection import Collected, JobGc, Tidied, collect, collect_feed, would_collect
from rewindow.control.health.holds import describe_holds
from rewindow.control.health.phrases import command_words
from rewindow.control.heartbeat import remove_abandoned, this_attempt
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_fold import decide_reset
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.retention import EVERY
from rewindow.control.plan.spec import OUTPUT, RunRequest
from rewindow.control.run import RunReport
from rewindow.errors import naming
from rewindow.tables.shared.warehouse import check_not_deleted


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run that was resumed, the attempt that had planned it, and the result. All are None if no run was unfinished."""

    run: str | None
    attempt: str | None
    result: RunReport | UpToDate | None


class _LazyEngine:
    """An engine that starts only when it gets its first work. Most repairs give it none."""

    def __init__(self, project: OpenProject) -> None:
        self._project = project

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        return self._project.engine.run_sub_topology(work)

    def stage_rows(self, *of: Any) -> list[StagedFile]:
        return self._project.engine.stage_rows(*of)


class JobMaintenance:
    """Maintenance of one job."""

    def __init__(self, project: OpenProject, job: str) -> None:
        """Bind to a job of a project. Raises `ConfigError` (78) for an unknown job."""
        project.job_config(job)
        self._project, self._job = project, job

    def republish(self, branch: str, outputs: list[str], *, all_tables: bool, on_step: OnStep = None) -> Republished:
        """Find and repair drift in a branch's tables; see `control.drift_repair.republish`.

        Republishes ``outputs``, or with ``all_tables`` every table of the branch, even if they are intact.
        """
        project = self._project
        with naming(JOB=command_words(self._job, branch)):
            state = project.state(self._job)
            check_has_branch(self._job, state, branch)
            check_not_deleted(self._job, state.branch(branch), project.tables.version_of)
            job = project.bind(self._job, branch)
            project.tables.later_refusals(job, state).check_ledgers(branch)
            asked = RepublishRequest(branch, None if all_tables else [OUTPUT + name for name in outputs])
            repair = project.adapter.repair()
            return drive(republish(job, asked, this_attempt, _LazyEngine(project), project.tables, repair), on_step)

    def collect(self, keep_ms: int, *, every: int = EVERY, on_step: OnStep = None) -> Collected:
        """Write due snapshots, forget unneeded runs older than ``keep_ms``, and delete orphan files."""
        gc, now_ms = self._gc, time.time_ns() // 1_000_000
        with naming(JOB=self._job):
            self._project.state(self._job)  # refuses a lost ledger; else all its files would be garbage
            machine = collect(
                self._job, self._project.tables, gc, before_ms=now_ms - keep_ms, keep_ms=keep_ms, every=every
            )
            remove_abandoned(self._project.warehouse, keep_ms)
            return drive(machine, on_step)

    def would_collect(self, keep_ms: int, *, every: int = EVERY) -> Collected:
        """Return what `collect` would do. Changes nothing."""
        tables, before_ms = self._project.tables, time.time_ns() // 1_000_000 - keep_ms
        self._project.state(self._job, *tables.state(self._job).branches)  # refuses a lost ledger, as `collect` does
        return would_collect(self._job, tables, self._gc, before_ms=before_ms, keep_ms=keep_ms, every=every)

    def would_reset(self) -> list[str]:
        """Return the paths of the tables that `reset` would empty; an empty list if the job is at its beginning."""
        outputs, tables = self._project.outputs_of(self._job), self._project.tables
        state = tables.state(self._job)
        row = decide_reset(state, tables.unknown_tables(self._job, state, outputs))
        return sorted(row.body["tables"]) if row else []

    def reset(self, *, on_step: OnStep = None) -> list[str]:
        """Start the job over and return the paths of the tables that were emptied; see `control.branch`."""
        outputs = self._project.outputs_of(self._job)
        with naming(JOB=self._job):
            row = drive(reset(self._job, outputs, self._project.tables), on_step)
        return sorted(row.body["tables"]) if row else []

    def outdated(self) -> list[dict[str, Any]]:
        """Return the feeds that contain rows of removed runs of the job, as JSON values."""
        return [asdict(reader) for reader in outdated_readers(self._project.root, self._project.tables, self._job)]

    @property
    def _gc(self) -> JobGc:
        return self._project.adapter.job_gc(self._job, self._project.is_alive)

    def resume(self, branch: str, *, replan: bool, take_over: bool, on_step: OnStep = None) -> Resumed:
        """Complete the plan of an unfinished attempt without changes. With ``replan``, discard this plan and plan a new run."""
        planned = self._project.state(self._job).branch(branch).pending
        if planned is None:
            for _step in self._project.tables.publish(self._job, self._project.tables.state(self._job), branch):
                pass
            return Resumed(None, None, None)
        through = None if replan else planned.input.last or None
        request = RunRequest(
            branch=branch,
            through_landing=through,
            final=planned.final,
            replan=replan,
            take_over=take_over,
            key=planned.key,
        )
        with without_options(run_first(self._job, branch), "--replan", "--takeover"):
            return Resumed(planned.name, planned.attempt.id, self._project.run(self._job, request, on_step))

    def on_hold(self, branch: str) -> list[dict[str, Any]]:
        """Return the runs of a branch that are on hold, as JSON values."""
        return describe_holds(self._project.tables.state(self._job), branch)


class FeedMaintenance:
    """Maintenance of one feed."""

    def __init__(self, project: OpenProject, feed: str) -> None:
        """Bind to a feed of a project. Raises `ConfigError` (78) for an unknown feed."""
        load_feed(project.root, feed)
        self._project, self._feed = project, feed
        self._tables = project.feed_tables
        self._gc = project.adapter.feed_gc(feed, no_run_reads(feed, project.root, project.tables, project.is_alive))

    def collect(self, keep_ms: int, *, on_step: OnStep = None) -> Tidied:
        """Merge small files, and delete files that were replaced at least ``keep_ms`` and at least one day ago."""
        with naming(FEED=self._feed):
            remove_abandoned(self._project.warehouse, keep_ms)
            return drive(collect_feed(self._feed, self._tables.publish_steps, self._gc, keep_ms=keep_ms), on_step)

    def would_collect(self, keep_ms: int) -> Tidied:
        """Return what `collect` would do. Changes nothing."""
        return Tidied(merged=self._gc.due(), deleted=list(self._gc.garbage(keep_ms)))
