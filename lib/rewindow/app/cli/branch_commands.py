"""The commands that work on branches: rewind, backfill, diff, promote, verify and branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from rewindow.app.branches import Backfilled, Compared, JobBranches
from rewindow.app.cli.completing import branches as branch_names
from rewindow.app.cli.options import AcceptChanges, Branch, Debug, Folder, Job, Json, Target, checked_branch
from rewindow.app.cli.printing_runs import RunPrinter, describe_result, end_on_hold
from rewindow.app.open_project import OpenProject
from rewindow.app.result_lines import (
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
from rewindow.app.times import ZONE
from rewindow.contracts.exit_codes import ON_HOLD
from rewindow.control.health.holds import Hold
from rewindow.control.plan.spec import MAIN
from rewindow.tables.shared.arrow_tables import json_value

DIFFERENT = 1

BranchName = Annotated[str, typer.Argument(metavar="BRANCH", help="Name of the branch.", autocompletion=branch_names)]

branch_app = typer.Typer(help="List or drop a job's branches.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (rewind, backfill, diff, promote, verify):
        app.command()(command)
    app.add_typer(branch_app, name="branch")


def rewind(
    job: Job,
    to: Annotated[
        str, typer.Option(metavar="RUN", help="Run to return to, as main/3 or 3; 0 is the state before the first run.")
    ],
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Return to an earlier run. Removes later runs' rows from the output tables, but deletes no file."""
    printer = RunPrinter(as_json=as_json)
    with printer.progress() as on_step:
        done = _branches(folder, target, job, debug=debug).rewind(branch, to, on_step)
    printer.result(done, _rewound_lines(job, done))


def backfill(
    job: Job,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="TIME|LANDING|RUN",
            help=f"First event time {ZONE}, landing or run to replay; rounded down to the start of a run.",
        ),
    ],
    end: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="TIME|LANDING|RUN",
            help=f"Last event time {ZONE}, landing or run to replay. Default: the end of main.",
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Branch to create, or to continue if it exists. Default: backfill-N.",
            autocompletion=branch_names,
            callback=checked_branch,
        ),
    ] = None,
    accept_changes: AcceptChanges = False,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Replay history on a branch with its own tables. Published tables do not change until `promote`."""
    printer = RunPrinter(as_json=as_json)
    branches = _branches(folder, target, job, debug=debug)
    with printer.progress() as on_step:
        done = branches.backfill(start, end, branch, on_step, accept_changes=accept_changes)
    holds = branches.on_hold(done.branch)
    _print_backfilled(printer, job, done, holds)
    end_on_hold(holds)


def diff(
    job: Job,
    first: Annotated[str, typer.Argument(metavar="BRANCH_A", help="First branch.", autocompletion=branch_names)],
    second: Annotated[str, typer.Argument(metavar="BRANCH_B", help="Second branch.", autocompletion=branch_names)],
    samples: Annotated[
        int, typer.Option(metavar="N", min=0, help="Maximum number of differing keys to show of each output.")
    ] = 5,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare two branches' outputs key by key. Exits with 1 if they differ, 79 if a run on hold leaves nothing to compare."""
    branches = _branches(folder, target, job, debug=debug)
    compared = branches.diff(first, second, samples)
    code = branches.code_changes(first, second) if compared.differs else []
    _print_compared(RunPrinter(as_json=as_json), compared, code)
    if compared.is_held:
        raise typer.Exit(ON_HOLD)
    if compared.differs:
        raise typer.Exit(DIFFERENT)


def promote(
    job: Job,
    branch: BranchName,
    into: Annotated[
        str, typer.Option(metavar="NAME", help="Branch whose runs are replaced.", autocompletion=branch_names)
    ] = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run a branch up to the last epoch of main, then publish it in place of main: one commit per table."""
    printer = RunPrinter(as_json=as_json)
    with printer.progress() as on_step:
        done = _branches(folder, target, job, debug=debug).promote(branch, into, on_step)
    printer.result(done, promoted_lines(job, done))


def verify(
    job: Job,
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Runs to verify, as main/3 or 3. Default: the last run."),
    ] = None,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Replay committed runs in a different layout and compare every row. Exits with 1 if a row differs."""
    printer = RunPrinter(as_json=as_json)
    with printer.progress() as on_step:
        proofs = _branches(folder, target, job, debug=debug).verify(branch, runs or (), on_step)
    printer.result({proof.run: dict(proof.differences) for proof in proofs}, verified_lines(job, proofs))
    if any(proof.differences for proof in proofs):
        raise typer.Exit(DIFFERENT)


@branch_app.command("list")
def branch_list(
    job: Job, target: Target = "local", folder: Folder = ".", as_json: Json = False, debug: Debug = False
) -> None:
    """List a job's branches with their parent, last run, progress and status."""
    RunPrinter(as_json=as_json).listed("branches", _branches(folder, target, job, debug=debug).branches())


@branch_app.command("drop")
def branch_drop(
    job: Job,
    name: BranchName,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Drop a branch. Its name cannot be used again."""
    printer = RunPrinter(as_json=as_json)
    with printer.progress() as on_step:
        _branches(folder, target, job, debug=debug).drop(name, on_step)
    printer.result({"dropped": name}, [f"Dropped branch {name} of {job}."])


def _branches(folder: str, target: str, job: str, *, debug: bool) -> JobBranches:
    return JobBranches(OpenProject.open(folder, target, debug=debug), job)


def _rewound_lines(job: str, done: Mapping[str, Any]) -> Iterator[str]:
    at = done["at"] or "the beginning"
    if done["rewound"]:
        yield f"Branch {done['branch']} of {job} is back at {at}. Rewound: {', '.join(done['rewound'])}."
    else:
        yield f"Branch {done['branch']} of {job} is at {at} already: nothing to rewind."
    yield from consequences(done)


def _print_backfilled(printer: RunPrinter, job: str, done: Backfilled, holds: Sequence[Hold]) -> None:
    """Print the result of `backfill`: where the branch starts, its runs, and the commands that the user may run next."""
    if printer.as_json:
        branch = {"job": job, "branch": done.branch, "stands_on": done.stands_on, "from_epoch": done.first_epoch}
        kept = {"replaced": list(done.replaced), "continues": done.continues}
        results = [describe_result(result) for result in done.results]
        printer.json({**branch, **kept, "runs": results, "on_hold": list(holds)})
        return
    for line in backfilled_lines(job, done.branch, done.stands_on, done.first_epoch, done.replaced, done.continues):
        printer.say(line)
    printer.ran(done.results, holds=holds)
    if done.other_keys:
        outputs = ", ".join(done.other_keys)
        printer.say(f"The keys of {outputs} have other columns than on main, so `rewindow diff` cannot compare them.")
    if holds:
        if not done.other_keys:
            printer.say(f"Then compare: rewindow diff {job} main {done.branch}")
        return
    compare, against = (
        ("", "") if done.other_keys else (f"Compare: rewindow diff {job} main {done.branch}. ", " --diff main")
    )
    printer.say(f"{compare}Publish: rewindow promote {job} {done.branch}.")
    printer.say(f"Report: rewindow report {job} --branch {done.branch}{against}")


def _print_compared(printer: RunPrinter, compared: Compared, code: Sequence[str]) -> None:
    """Print what was compared of two branches and how each output differs. ``code``: how the code of their last runs differs."""
    first, second, diffs = compared.first, compared.second, compared.diffs
    if printer.as_json:
        epochs = [compared.epochs[0], compared.epochs[-1]] if compared.epochs else None
        extent = {"epochs": epochs, "final_runs": compared.has_finals, "on_hold": list(compared.on_hold)}
        printer.json(
            {
                output: json_value(asdict(diff)) | {"not_shown": diff.apart - len(diff.samples)} | extent
                for output, diff in diffs.items()
            }
        )
        return
    printer.say(compared_line(compared))
    if not compared.extent:
        return
    printer.table("Keys", compared_rows(compared))
    for output, diff in diffs.items():
        for key, ours, theirs in diff.samples:
            printer.say(
                f"{output} {as_assignments(key, key)}: {first} {shown_rows(ours)}, {second} {shown_rows(theirs)}"
            )
        for note in notes_on(diff, "--samples {}"):
            printer.say(f"{output}: {note}.")
    if code:
        printer.say(f"{first} and {second} ran different code: {'; '.join(code)}")
