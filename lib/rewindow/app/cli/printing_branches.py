"""Output of the commands that work on branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rewindow.app.branches import Backfilled, Compared
from rewindow.app.cli.printing import Printer, as_assignments, describe_result
from rewindow.control.plan.explain_holds import Hold
from rewindow.control.plan.spec import OUTPUT
from rewindow.control.verify import Verified
from rewindow.report.text import counted
from rewindow.tables.shared.diff import TableDiff


class BranchPrinter(Printer):
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
            self.json({**branch, "replaced": list(done.replaced), "runs": results, "on_hold": list(holds)})
            return
        start = f"after run {done.stands_on}" if done.stands_on else "without a parent run"
        self.say(f"Branch {done.branch} of {job} starts {start}, with epoch {done.first_epoch}.")
        if done.replaced:
            self.say(f"The job has changed since {', '.join(done.replaced)}: the branch starts over.")
        self.ran(done.results, holds=holds)
        self.say(f"Compare: rewindow diff {job} main {done.branch}. Publish: rewindow promote {job} {done.branch}.")
        self.say(f"Report: rewindow report {job} --branch {done.branch} --diff main")

    def compared(self, found: Compared, code: Sequence[str] = ()) -> None:
        """Print what was compared of two branches, how each output differs, and how the ``code`` of their last runs does."""
        first, second, diffs = found.first, found.second, found.diffs
        if self.as_json:
            self.json(
                {one: asdict(diff) | {"not_shown": diff.apart - len(diff.samples)} for one, diff in diffs.items()}
            )
            return
        self.say(compared_line(found))
        if not found.epochs:
            return
        self.table("Keys", compared_rows(found))
        for output, table_diff in diffs.items():
            for key, ours, theirs in table_diff.samples:
                self.say(f"{output} {as_assignments(key)}: {first} {shown_rows(ours)}, {second} {shown_rows(theirs)}")
            for told in not_all(table_diff, "--samples {}"):
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


def compared_line(found: Compared) -> str:
    """Return which epochs of two branches were compared, as a sentence."""
    first, second = found.first, found.second
    since = f" Both have every run through {found.shared}." if found.shared else ""
    if not found.epochs:
        return f"Nothing to compare: {first} and {second} share no epoch that they replayed separately.{since}"
    last = found.epochs[-1]
    return f"Compared epochs {found.epochs[0]} to {last}, which {first} and {second} replayed separately.{since}"


def not_all(diff: TableDiff, option: str) -> Iterator[str]:
    """Yield that not all keys that differ are shown, if so. ``option``: what shows them, with ``{}`` for their number."""
    if diff.apart > len(diff.samples):
        yield f"{len(diff.samples):,} of {diff.apart:,} keys that differ are shown; `{option.format(diff.apart)}` shows all"


def compared_rows(found: Compared) -> list[dict[str, Any]]:
    """Return for each output how many keys differ between two branches."""
    return [
        {
            "output": output,
            "equal": table_diff.equal,
            "different": table_diff.different,
            f"only in {found.first}": table_diff.only_first,
            f"only in {found.second}": table_diff.only_second,
        }
        for output, table_diff in found.diffs.items()
    ]


def promoted_lines(job: str, done: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that present the result of `promote`."""
    caught_up = f" It first caught up with {', '.join(done['caught_up'])}." if done["caught_up"] else ""
    if done["is_new"]:
        yield f"Promoted branch {done['branch']} of {job} to {done['into']}, now at {done['at']}.{caught_up}"
    else:
        yield f"Branch {done['branch']} of {job} is part of {done['into']} already, which is at {done['at']}."
    for output, (before, after) in done["fewer"].items():
        yield (
            f"  {output}: {before - after} rows fewer than before, {after} in place of {before}. Rows whose windows the new "
            f"code still keeps open come with later landings: `rewindow why {job} KEY --missing` says when."
        )
    yield from consequences(done)


def consequences(done: Mapping[str, Any]) -> Iterator[str]:
    """Yield what else a change of a branch did, and what it asks for."""
    if done["lagged"]:
        yield f"Published what an interrupted command had left: {', '.join(done['lagged'])}."
    for feed in done.get("read_by", ()):
        yield (
            f"Feed {feed} reads this job's output and still holds rows of the removed runs. "
            f"Land it again: `rewindow land {feed} --new-generation [--keep N]`."
        )


def verified_lines(job: str, proofs: Sequence[Verified]) -> Iterator[str]:
    """Yield the lines that present replayed runs."""
    for proof in proofs:
        if not proof.differences:
            yield f"Run {proof.run} of {job}: the replay reproduced all {_counts(proof.counts)}."
        for target, difference in proof.differences.items():
            yield f"Run {proof.run} of {job} is not deterministic. {target}: {difference}"


def _counts(counts: Mapping[str, int]) -> str:
    """Return how many rows a replay made, in all and for each target, which `show` lists; outputs first."""
    listed = sorted(counts.items(), key=lambda one: not one[0].startswith(OUTPUT))
    each = ", ".join(f"{rows:,} of {target}" for target, rows in listed)
    return f"{counted(sum(counts.values()), 'row')} that it wrote{f': {each}' if each else ''}"


def shown_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of a key in one line."""
    return "; ".join(f"({as_assignments(row)})" for row in rows) or "nothing"
