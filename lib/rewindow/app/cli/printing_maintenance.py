"""Output of the commands that repair, clean up and query state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.app.cli.printing_runs import RunPrinter, describe_result
from rewindow.app.maintenance import Resumed
from rewindow.app.sentences import as_assignments, outdated_lines, reset_line
from rewindow.app.times import with_readable_times
from rewindow.control.drift_repair import Republished
from rewindow.control.gc import Collected, FeedCollected
from rewindow.control.health.job_health import Hold
from rewindow.control.health.phrases import counted
from rewindow.control.plan.planner import UpToDate
from rewindow.control.run import RunReport
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.shared.state_query import StoreChange


class MaintenancePrinter(RunPrinter):
    """Prints what was repaired, cleaned up or found in state."""

    def republished(self, job: str, done: Republished) -> None:
        """Print the result of `republish`: the drift found and the repairs made."""
        if self.as_json:
            self.json(
                {
                    "drift": dict(done.drift),
                    "republished": list(done.republished),
                    "repeated": list(done.repeated),
                    "lagged": list(done.lagged),
                    "left_out": {target: list(runs) for target, runs in done.left_out.items()},
                }
            )
            return
        for target, drift in done.drift.items():
            self.say(f"{target} {drift}.")
        for run in done.repeated:
            self.say(f"Run {run} of {job} was replayed and gave the same rows.")
        for target in done.republished:
            self.say(f"{target} was republished.")
        for target, runs in done.left_out.items():
            self.say(
                f"{target} no longer has rows of {', '.join(runs)}: their files were gone, and no branch needs the runs."
            )
        if done.lagged:
            self.say(f"Published what {', '.join(done.lagged)} lacked.")
        if not (done.drift or done.republished or done.repeated or done.lagged):
            self.say(f"The tables of {job} are intact.")

    def entries(
        self,
        rows: Sequence[Mapping[str, Any]],
        count: int,
        store: str,
        keys: Sequence[str],
        where: Mapping[str, str],
    ) -> None:
        """Print some of the ``count`` entries of a store with these key columns; ``where``: the values that were asked for."""
        if self.as_json:
            self.json({"entries": list(rows), "count": count})
            return
        if not rows:
            key = ", ".join(f"{name}={value}" for name, value in where.items())
            self.say(f"Store {store} has no entry{f' with {key}' if key else ''}.")
            return
        self.table("", with_readable_times(rows, keys))
        if count > len(rows):
            self.say(f"{len(rows)} of {count} entries. Use --limit to show more.")

    def changed(self, store: str, runs: tuple[str, str], changes: Sequence[StoreChange], limit: int) -> None:
        """Print how a store differs between two runs."""
        shown = changes[:limit]
        if self.as_json:
            self.json({"count": len(changes), "changes": [change.as_json() for change in shown]})
            return
        in_several = any(change.in_several for change in changes)
        rows = [
            {
                **({PARTITION: change.partition} if in_several else {}),
                **change.key,
                runs[0]: _values(change.before),
                runs[1]: _values(change.after),
            }
            for change in shown
        ]
        what = "entries" if in_several else "keys"
        self.say(f"Store {store}: {len(changes)} {what} differ between {runs[0]} and {runs[1]}.")
        if rows:
            self.table("", with_readable_times(rows, shown[0].key))
        if len(changes) > len(shown):
            self.say(f"{len(shown)} of {len(changes)} {what}. Use --limit to show more.")

    def exported(self, store: str, to: str, count: int) -> None:
        """Print the result of `state export`."""
        if self.as_json:
            self.json({"store": store, "file": to, "rows": count})
        else:
            self.say(f"Wrote {counted(count, 'row')} of store {store} to {to}.")

    def collected(self, done: Mapping[str, Collected | FeedCollected], *, dry_run: bool) -> None:
        """Print the result of `gc`: what was, or with ``dry_run`` would be, written, forgotten and deleted."""
        if self.as_json:
            self.json({name: _describe(collected) for name, collected in done.items()})
            return
        would = "would be " if dry_run else ""
        jobs = {name: collected for name, collected in done.items() if isinstance(collected, Collected)}
        feeds = {name: collected for name, collected in done.items() if isinstance(collected, FeedCollected)}
        of_jobs = [
            {
                "job": job,
                f"snapshots {would}written": ", ".join(collected.snapshots),
                f"runs {would}forgotten": collected.forgotten,
                f"files {would}merged": collected.merged,
                **({} if dry_run else {"into": collected.into}),
                f"files {would}deleted": len(collected.deleted),
                "bytes": collected.bytes,
            }
            for job, collected in jobs.items()
        ]
        of_feeds = [
            {
                "feed": feed,
                f"files {would}merged": collected.merged,
                **({} if dry_run else {"into": collected.into}),
                f"files {would}deleted": len(collected.deleted),
                "bytes": collected.bytes,
            }
            for feed, collected in feeds.items()
        ]
        for rows in (of_jobs, of_feeds):
            if rows:
                self.table("", rows)

    def was_reset(self, job: str, tables: Sequence[str], outdated: Sequence[Mapping[str, Any]]) -> None:
        """Print the result of `reset`: the tables that were emptied, and the feeds that hold rows of them."""
        if self.as_json:
            self.json({"job": job, "emptied": list(tables), "outdated": list(outdated)})
        elif tables:
            self.say(reset_line(job, tables))
            for line in outdated_lines(outdated, is_emptied=True):
                self.say(line)
        else:
            self.say(f"{job} is at its beginning: there is nothing to forget.")

    def resumed(self, job: str, done: Resumed, holds: Sequence[Hold] = ()) -> None:
        """Print the result of `resume`."""
        result = done.result
        if self.as_json:
            more = describe_result(result) if isinstance(result, RunReport | UpToDate) else {}
            self.json({"resumed": done.run, "attempt": done.attempt, "on_hold": list(holds)} | more)
            return
        if result is None:
            self.say(f"Nothing to resume: {job} has no unfinished run.")
            self.ran([], holds=holds)
            return
        self.say(f"Run {done.run} of {job} was planned by attempt {done.attempt}, which died.")
        self.ran([result], holds=holds)


def _describe(collected: Collected | FeedCollected) -> dict[str, Any]:
    files = [{"path": f"{file.folder}/{file.path}", "bytes": file.bytes, "why": file.why} for file in collected.deleted]
    if isinstance(collected, FeedCollected):
        return {"merged": collected.merged, "into": collected.into, "deleted": files}
    return {
        "snapshots": list(collected.snapshots),
        "forgotten": collected.forgotten,
        "reports": collected.reports,
        "merged": collected.merged,
        "into": collected.into,
        "deleted": files,
    }


def _values(row: Mapping[str, Any] | None) -> str:
    return "-" if row is None else as_assignments(row)
