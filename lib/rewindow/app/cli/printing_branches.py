"""Output of the commands that work on branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rewindow.app.branch_results import Backfilled, Compared
from rewindow.app.cli.printing_runs import RunPrinter, describe_result
from rewindow.app.sentences import (
    as_assignments,
    backfilled_lines,
    compared_line,
    compared_rows,
    consequences,
    notes_on,
    promoted_lines,
    shown_rows,
    verified_lines,
)
from rewindow.control.health.job_health import Hold
from rewindow.control.verify import Verified
from rewindow.tables.shared.arrow_tables import json_value


class BranchPrinter(RunPrinter):
    """Prints what happened to a job's branches."""

    def rewound(self, job: str, done: Mapping[str, Any]) -> None:
        """Print the result of `rewind`."""
        if self.as_json:
            self.json(done)
            return
        at = done["at"] or "the beginning"
        if done["rewound"]:
            self.say(f"Branch {done['branch']} of {job} is back at {at}. Rewound: {', '.join(done['rewound'])}.")
        else:
            self.say(f"Branch {done['branch']} of {job} is at {at} already: nothing to rewind.")
        for line in consequences(done):
            self.say(line)

    def backfilled(self, job: str, done: Backfilled, holds: Sequence[Hold] = ()) -> None:
        """Print the result of `backfill`: where the branch starts, and its runs."""
        results = [describe_result(result) for result in done.results]
        if self.as_json:
            branch = {"job": job, "branch": done.branch, "stands_on": done.stands_on, "from_epoch": done.first_epoch}
            kept = {"replaced": list(done.replaced), "continues": done.continues}
            self.json({**branch, **kept, "runs": results, "on_hold": list(holds)})
            return
        for line in backfilled_lines(job, done.branch, done.stands_on, done.first_epoch, done.replaced, done.continues):
            self.say(line)
        self.ran(done.results, holds=holds)
        if done.other_keys:
            outputs = ", ".join(done.other_keys)
            self.say(f"The keys of {outputs} have other columns than on main, so `rewindow diff` cannot compare them.")
            if not holds:
                self.say(f"Publish: rewindow promote {job} {done.branch}.")
                self.say(f"Report: rewindow report {job} --branch {done.branch}")
            return
        if holds:
            self.say(f"Then compare: rewindow diff {job} main {done.branch}")
            return
        self.say(f"Compare: rewindow diff {job} main {done.branch}. Publish: rewindow promote {job} {done.branch}.")
        self.say(f"Report: rewindow report {job} --branch {done.branch} --diff main")

    def compared(self, found: Compared, code: Sequence[str] = ()) -> None:
        """Print what was compared of two branches, how each output differs, and how the ``code`` of their last runs does."""
        first, second, diffs = found.first, found.second, found.diffs
        if self.as_json:
            epochs = [found.epochs[0], found.epochs[-1]] if found.epochs else None
            compared = {"epochs": epochs, "final_runs": found.has_finals, "on_hold": list(found.on_hold)}
            self.json(
                {
                    one: json_value(asdict(diff)) | {"not_shown": diff.apart - len(diff.samples)} | compared
                    for one, diff in diffs.items()
                }
            )
            return
        self.say(compared_line(found))
        if not found.extent:
            return
        self.table("Keys", compared_rows(found))
        for output, table_diff in diffs.items():
            for key, ours, theirs in table_diff.samples:
                self.say(
                    f"{output} {as_assignments(key, key)}: {first} {shown_rows(ours)}, {second} {shown_rows(theirs)}"
                )
            for told in notes_on(table_diff, "--samples {}"):
                self.say(f"{output}: {told}.")
        if code:
            self.say(f"{first} and {second} ran different code: {'; '.join(code)}")

    def promoted(self, job: str, done: Mapping[str, Any]) -> None:
        """Print the result of `promote`."""
        if self.as_json:
            self.json(done)
            return
        for line in promoted_lines(job, done):
            self.say(line)

    def verified(self, job: str, proofs: Sequence[Verified]) -> None:
        """Print the result of `verify`."""
        if self.as_json:
            self.json({proof.run: dict(proof.differences) for proof in proofs})
            return
        for line in verified_lines(job, proofs):
            self.say(line)

    def dropped(self, job: str, name: str) -> None:
        """Print the result of `branch drop`."""
        if self.as_json:
            self.json({"dropped": name})
        else:
            self.say(f"Dropped branch {name} of {job}.")
