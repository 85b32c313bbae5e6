"""Sentences about results, and readable forms of rows, for the command line and the Python API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewindow.app.times import with_readable_times
from rewindow.contracts.instants import instant
from rewindow.control.health.phrases import command_words, counted, landing_numbers, see_quarantined
from rewindow.control.plan.spec import OUTPUT
from rewindow.errors import visible
from rewindow.streams.duration import in_words
from rewindow.tables.shared.publications import SHARED_TABLES

if TYPE_CHECKING:
    from rewindow.app.branches import Compared
    from rewindow.control.ingest.landing_report import LandReport
    from rewindow.control.verify import Verified
    from rewindow.tables.shared.diff import TableDiff

_MOST_ROWS = 5
"""The maximum number of rows that are shown per key and branch."""
TAKES_NO_MORE = "it takes no more runs. `rewindow rewind` to the run before takes that back"
"""The end of a sentence about a branch after a final run."""


def landed_lines(feed: str, report: LandReport) -> Iterator[str]:
    """Yield the lines that are printed for the result of `land`."""
    if not report.landings:
        yield f"Feed {feed}: {report.waiting or 'nothing new to land'}."
        return
    first, last = report.landings[0], report.landings[-1]
    records = "1 record" if report.rows == 1 else f"{report.rows} records"
    line = f"Feed {feed}: {landing_numbers(first, last)}, {records}, complete through {instant(report.watermark_ms)}."
    yield line + (f" ({report.quarantined} quarantined: `{see_quarantined(feed)}`)" if report.quarantined else "")
    yield from (f"{order}." for order in report.orders)
    if report.waiting:
        yield f"Feed {feed}: {report.waiting}."
    if report.held_ms:
        yield f"Its watermark is {in_words(report.held_ms)} below that of its job, which may hold rows back for so long."
    if report.behind:
        is_one = report.behind == 1
        yield (
            f"{counted(report.behind, 'row')} became visible after {'its' if is_one else 'their'} interval of arrival had been "
            f"landed; {'it is' if is_one else 'they are'} part of {'this landing' if first == last else 'these landings'}. "
            f"If jobs drop {'it' if is_one else 'them'} as late, `rewindow land {feed} --new-generation --keep N` lands the rows "
            "after landing N again, each in its interval."
        )
    if report.unarrived:
        is_one = report.unarrived == 1
        yield (
            f"{counted(report.unarrived, 'row')} {'has' if is_one else 'have'} no arrival time, so "
            f"{'it was' if is_one else 'they were'} quarantined."
        )
    if report.was_interrupted:
        yield (
            f"An interrupted call had started generation {report.generation}, which is now published. "
            "Land again to take newer rows."
        )


def backfilled_lines(
    job: str, branch: str, stands_on: str | None, first_epoch: int, replaced: Sequence[str], continues: str | None
) -> Iterator[str]:
    """Yield the lines that introduce a backfill. The lines of its runs follow.

    For the parameters, see `app.branches.Backfilled`.
    """
    start = f"after run {stands_on}" if stands_on else "at the beginning"
    if continues:
        yield f"Branch {branch} of {job}, which starts {start}, continues after run {continues}."
    else:
        yield f"Branch {branch} of {job} starts {start}, with epoch {first_epoch}."
    if replaced:
        yield f"The job has changed since {', '.join(replaced)}: the branch starts over."


def promoted_lines(job: str, done: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that are printed for the result of `promote`."""
    caught_up = f" It first caught up with {', '.join(done['caught_up'])}." if done["caught_up"] else ""
    if done["is_new"]:
        yield f"Promoted branch {done['branch']} of {job} to {done['into']}, now at {done['at']}.{caught_up}"
    else:
        yield f"Branch {done['branch']} of {job} is part of {done['into']} already, which is at {done['at']}."
    for output, (before, after) in done["fewer"].items():
        yield (
            f"  {output}: {counted(before - after, 'row')} fewer than before, {after} in place of {before}. The new code leaves "
            "them out, or still keeps their windows open, and they come with later landings: "
            f"`rewindow why {job} KEY --missing` says which."
        )
    if done["other_code"]:
        yield (
            f"The present code is not that of {done['at']}: {'; '.join(done['other_code'])}. Restore that code before the next "
            f"run of {done['into']}, which is refused (76) otherwise, unless it accepts the change (`--accept-changes`)."
        )
    if done["is_sealed"]:
        yield f"Branch {done['into']} is sealed now, because {done['at']} is a final run: {TAKES_NO_MORE}."
    elif done["waiting"]:
        rows = (
            "1 landing waits, and its rows are"
            if done["waiting"] == 1
            else f"{done['waiting']:,} landings wait, and their rows are"
        )
        yield f"{rows} not in {done['into']} before the next run: `rewindow run {command_words(job, done['into'])}`."
    yield from consequences(done)


def consequences(done: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about further effects of a command that changed a branch, and about the next steps."""
    if done["lagged"]:
        yield f"Published what {', '.join(done['lagged'])} lacked."
    yield from outdated_lines(done.get("outdated", ()), is_emptied=not done["at"])


def outdated_lines(outdated: Iterable[Mapping[str, Any]], *, is_emptied: bool) -> Iterator[str]:
    """Yield a line for each feed with rows of a job's removed runs, with the command that lands the feed again.

    ``is_emptied`` says whether the job has no run any more.
    """
    for reader in outdated:
        keep = f" --keep {reader['keep']}" if reader["keep"] else ""
        which = f"its landings after {reader['keep']} hold" if reader["keep"] else "it holds"
        replay = ""
        if reader["jobs"]:
            jobs = "the job {} has" if len(reader["jobs"]) == 1 else "the jobs {} have"
            replay = f" Then {jobs.format(', '.join(reader['jobs']))} to replay them, as the next `rewindow run` says."
        when = "Run this job, and land them again" if is_emptied else "Land them again"
        yield (
            f"Feed {reader['feed']} reads this job's output, and {which} rows of runs that are gone. {when}: "
            f"`rewindow land {reader['feed']} --new-generation{keep}`.{replay}"
        )


def reset_question(job: str, tables: Sequence[str]) -> str:
    """Return the question that `reset` asks, given the paths of the tables that it would change."""
    own, shared = _own_and_shared(tables)
    parts = [
        f"Forget all runs and branches of {job}",
        *([f"empty {own}"] if own else []),
        *([f"remove its rows, but no others, from {shared}"] if shared else []),
    ]
    first, *more = parts
    listed = ", ".join([first, *more[:-1]]) + f" and {more[-1]}" if more else first
    return f"{listed}?"


def reset_line(job: str, tables: Sequence[str]) -> str:
    """Return the sentence that says what `reset` did, given the paths of the tables that it changed."""
    own, shared = _own_and_shared(tables)
    emptied = f" Emptied: {own}." if own else ""
    removed = f" Removed the rows of {job}, and no others, from {shared}." if shared else ""
    return f"{job} starts over.{emptied}{removed} `rewindow run {job}` replays all landings."


def _own_and_shared(tables: Sequence[str]) -> tuple[str, str]:
    return (
        ", ".join(table for table in tables if table not in SHARED_TABLES),
        ", ".join(table for table in tables if table in SHARED_TABLES),
    )


def verified_lines(job: str, proofs: Sequence[Verified]) -> Iterator[str]:
    """Yield the lines that are printed for replayed runs."""
    for proof in proofs:
        if not proof.differences:
            yield f"Run {proof.run} of {job}: the replay reproduced all {_counts(proof.counts)}."
        for target, difference in proof.differences.items():
            yield f"Run {proof.run} of {job} is not deterministic. {target}: {difference}"


def _counts(counts: Mapping[str, int]) -> str:
    """Return how many rows a replay wrote: the total, and the number for each target that `show` lists.

    Outputs come first.
    """
    listed = sorted(counts.items(), key=lambda item: not item[0].startswith(OUTPUT))
    each = ", ".join(f"{rows:,} of {target}" for target, rows in listed)
    return f"{counted(sum(counts.values()), 'row')} that it wrote{f': {each}' if each else ''}"


def compared_line(compared: Compared) -> str:
    """Return a sentence that says which epochs of two branches were compared."""
    from rewindow.report.text import told_holds, told_left_out  # noqa: PLC0415 - few commands compare

    first, second = compared.first, compared.second
    since = f" Both have every run through {compared.shared}." if compared.shared else ""
    held = f" {told_holds(compared.on_hold)}" if compared.on_hold else ""
    if not compared.extent and held:
        return f"Nothing to compare yet.{held}"
    left_out = f" {told_left_out(compared.left_out)}." if compared.left_out else ""
    if not compared.extent:
        return (
            f"Nothing to compare: {first} and {second} share no epoch that they replayed separately.{since}{left_out}"
        )
    return f"Compared {compared.extent}, which {first} and {second} replayed separately.{since}{left_out}{held}"


def compared_rows(compared: Compared) -> list[dict[str, Any]]:
    """Return one row for each output: the numbers of its equal and different keys on two branches."""
    return [
        {
            "output": output,
            "equal": table_diff.equal,
            "different": table_diff.different,
            f"only in {compared.first}": table_diff.only_first,
            f"only in {compared.second}": table_diff.only_second,
        }
        for output, table_diff in compared.diffs.items()
    ]


def notes_on(diff: TableDiff, option: str) -> Iterator[str]:
    """Yield notes on a comparison: how many keys differ only in their landing, and how many different keys are not shown.

    ``option`` is the option that shows more keys, with ``{}`` in place of their number.
    """
    if diff.only_epoch:
        have = "has" if diff.only_epoch == 1 else "have"
        yield f"{diff.only_epoch:,} of the different keys {have} the same rows, of another landing: only `_epoch` differs"
    if diff.apart > len(diff.samples):
        yield f"{len(diff.samples):,} of {diff.apart:,} keys that differ are shown; `{option.format(diff.apart)}` shows all"


def shown_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the first rows of a key in one line."""
    more = [f"and {len(rows) - _MOST_ROWS:,} more rows"] if len(rows) > _MOST_ROWS else []
    return "; ".join([*(f"({as_assignments(row)})" for row in rows[:_MOST_ROWS]), *more]) or "nothing"


def as_assignments(row: Mapping[str, Any], keys: Iterable[str] = ()) -> str:
    """Return a row as ``name=value, name=value`` in one line. Times in rewindow's own columns become readable.

    ``keys``: the key columns of the output or store.
    """
    (readable,) = with_readable_times([row], keys)
    return visible(", ".join(f"{name}={value}" for name, value in readable.items()))


def readable(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of JSON values in a form for people.

    Names have blanks instead of underscores. Times, lists and booleans become text.
    """
    return {
        "complete through" if name == "watermark_ms" else name.replace("_", " "): _shown(name, value)
        for name, value in row.items()
    }


def _shown(name: str, value: Any) -> Any:
    if name == "watermark_ms":
        return "-" if value is None else instant(value)
    if name == "epochs":
        return "-" if value is None else "-".join(str(epoch) for epoch in value)
    if isinstance(value, bool):
        return "yes" if value else ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
