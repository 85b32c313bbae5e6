"""What the commands of time travel say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rewindow.app.branches import Backfilled
from rewindow.app.cli.printing import Printer, describe_result
from rewindow.control.verify import Verified
from rewindow.tables.delta.diff import TableDiff


class HistoryPrinter(Printer):
    """Prints what became of a job's history."""

    def rewound(self, job: str, done: Mapping[str, Any]) -> None:
        """Say where a branch is now."""
        if self.as_json:
            self.json(done)
            return
        at = done["at"] or "the beginning"
        self.say(f"Branch {done['branch']} of {job} is back at {at}: {', '.join(done['rewound'])} count no more.")
        self._read_by(done)

    def backfilled(self, job: str, done: Backfilled) -> None:
        """Say where a branch began and which runs it made."""
        results = [describe_result(result) for result in done.results]
        if self.as_json:
            self.json(
                {"branch": done.branch, "stands_on": done.stands_on, "from_epoch": done.first_epoch, "runs": results}
            )
            return
        self.say(
            f"Branch {done.branch} of {job} stands on {done.stands_on or 'nothing'}: from epoch {done.first_epoch}."
        )
        self.ran(done.results)
        self.say(f"Compare: rewindow diff {job} main {done.branch}. Publish: rewindow promote {job} {done.branch}.")

    def compared(self, first: str, second: str, found: Mapping[str, TableDiff], code: Sequence[str] = ()) -> None:
        """Say how two branches differ, output by output, and how the ``code`` of their last runs does."""
        if self.as_json:
            self.json({output: asdict(difference) for output, difference in found.items()})
            return
        rows = [
            {
                "output": output,
                "equal": difference.equal,
                "different": difference.different,
                f"only in {first}": difference.only_first,
                f"only in {second}": difference.only_second,
            }
            for output, difference in found.items()
        ]
        self.table("Keys", rows)
        for output, difference in found.items():
            for key, ours, theirs in difference.samples:
                self.say(f"{output} {_words(key)}: {first} {_rows(ours)}, {second} {_rows(theirs)}")
        if code:
            self.say(f"{first} and {second} ran different code: {'; '.join(code)}")

    def promoted(self, job: str, done: Mapping[str, Any]) -> None:
        """Say what a branch is now."""
        if self.as_json:
            self.json(done)
            return
        caught_up = f" It caught up with {', '.join(done['caught_up'])} first." if done["caught_up"] else ""
        self.say(f"{done['into']} of {job} is now what branch {done['branch']} was, at {done['at']}.{caught_up}")
        self._read_by(done)

    def _read_by(self, done: Mapping[str, Any]) -> None:
        for feed in done.get("read_by", ()):
            self.say(
                f"Feed {feed} lands what this job writes: what it has of the runs that went is no longer so. "
                f"Land it again: rewindow land {feed} --new-generation [--keep N]."
            )

    def verified(self, job: str, proofs: Sequence[Verified]) -> None:
        """Say what a replay proved."""
        if self.as_json:
            self.json({proof.run: dict(proof.differences) for proof in proofs})
            return
        for proof in proofs:
            if not proof.differences:
                self.say(f"Run {proof.run} of {job}: {proof.rows} rows, all made again as they were.")
            for target, words in proof.differences.items():
                self.say(f"Run {proof.run} of {job} is not deterministic. {target}: {words}")

    def listed(self, what: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Show rows."""
        if self.as_json:
            self.json({what: list(rows)})
        else:
            self.table("", rows)

    def dropped(self, job: str, name: str) -> None:
        """Say that a branch is gone."""
        if self.as_json:
            self.json({"dropped": name})
        else:
            self.say(f"Branch {name} of {job} is given up.")


def _words(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.items())


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(f"({_words(row)})" for row in rows) or "nothing"
