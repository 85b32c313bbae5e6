"""What the commands of recovery say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rewindow.app.cli.printing import Printer, describe_result
from rewindow.app.maintenance import Resumed
from rewindow.control.gc import Collected
from rewindow.control.gc_feed import FeedCollected
from rewindow.control.plan.planner import UpToDate
from rewindow.control.repair import Republished
from rewindow.control.run import RunReport
from rewindow.tables.delta.state_query import StoreChange


class RecoveryPrinter(Printer):
    """Prints what was fixed."""

    def republished(self, job: str, done: Republished) -> None:
        """Say what was wrong and what became of it."""
        if self.as_json:
            self.json(
                {
                    "damage": dict(done.drift),
                    "republished": list(done.republished),
                    "made_again": list(done.made_again),
                }
            )
            return
        for target, what in done.drift.items():
            self.say(f"{target} {what}.")
        for run in done.made_again:
            self.say(f"Run {run} of {job} was made again, row for row.")
        for target in done.republished:
            self.say(f"{target} is published anew.")
        if not (done.drift or done.republished or done.made_again):
            self.say(f"The tables of {job} are as they were published.")

    def listed(self, what: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Show rows."""
        if self.as_json:
            self.json({what: list(rows)})
        else:
            self.table("", rows)

    def entries(self, rows: Sequence[Mapping[str, Any]], count: int) -> None:
        """Show entries of a store, ``count`` of which there are."""
        if self.as_json:
            self.json({"entries": list(rows), "count": count})
            return
        self.table("", rows)
        if count > len(rows):
            self.say(f"{len(rows)} of {count}; --limit shows more.")

    def changed(self, store: str, runs: tuple[str, str], found: Sequence[StoreChange], limit: int) -> None:
        """Show how a store differs between two runs."""
        if self.as_json:
            self.json({"count": len(found), "changes": [asdict(change) for change in found[:limit]]})
            return
        rows = [
            {**change.key, runs[0]: _words(change.before), runs[1]: _words(change.after)} for change in found[:limit]
        ]
        self.say(f"Store {store}: {len(found)} keys differ between {runs[0]} and {runs[1]}.")
        if rows:
            self.table("", rows)

    def exported(self, store: str, to: str, count: int) -> None:
        """Say where a store was written."""
        if self.as_json:
            self.json({"store": store, "file": to, "rows": count})
        else:
            self.say(f"{count} rows of store {store} are in {to}.")

    def collected(self, done: Mapping[str, Collected | FeedCollected], *, dry_run: bool) -> None:
        """Say what was written, forgotten and deleted, or would be."""
        if self.as_json:
            self.json({name: _described(one) for name, one in done.items()})
            return
        would = "would be " if dry_run else ""
        jobs = {name: one for name, one in done.items() if isinstance(one, Collected)}
        feeds = {name: one for name, one in done.items() if isinstance(one, FeedCollected)}
        rows = [
            {
                "job": job,
                f"snapshots {would}written": ", ".join(one.snapshots),
                f"runs {would}forgotten": one.forgotten,
                f"files {would}deleted": len(one.deleted),
                "bytes": one.bytes,
            }
            for job, one in jobs.items()
        ]
        of_feeds = [
            {
                "feed": feed,
                f"files {would}merged": one.merged,
                **({} if dry_run else {"into": one.into}),
                f"files {would}deleted": len(one.deleted),
                "bytes": one.bytes,
            }
            for feed, one in feeds.items()
        ]
        for some in (rows, of_feeds):
            if some:
                self.table("", some)

    def resumed(self, job: str, done: Resumed) -> None:
        """Say what was taken up."""
        result = done.result
        if self.as_json:
            more = describe_result(result) if isinstance(result, RunReport | UpToDate) else {}
            self.json({"resumed": done.run, "attempt": done.attempt} | more)
            return
        if result is None:
            self.say(f"Nothing to resume: no run of {job} was planned and not committed.")
            return
        self.say(f"Run {done.run} of {job} was planned by attempt {done.attempt}, which died.")
        self.ran([result])


def _described(one: Collected | FeedCollected) -> dict[str, Any]:
    files = [{"path": f"{file.folder}/{file.path}", "bytes": file.bytes, "why": file.why} for file in one.deleted]
    if isinstance(one, FeedCollected):
        return {"merged": one.merged, "into": one.into, "deleted": files}
    return {"snapshots": list(one.snapshots), "forgotten": one.forgotten, "reports": one.reports, "deleted": files}


def _words(row: Mapping[str, Any] | None) -> str:
    return "-" if row is None else ", ".join(f"{name}={value}" for name, value in row.items())
