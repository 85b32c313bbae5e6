"""Say which columns of an output table differ from those that a job now gives it, and refuse what could not be published. Pure.

An output table is one that others read, so its columns never change (ADR-132): other columns need another table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rewindow.control.plan.job_state import Branch
from rewindow.control.plan.spec import OUTPUT, JobBinding, TableSpec
from rewindow.errors import CheckpointError

_TAKEN_OVER = "`key=STREAM.key` takes it over from a stream, and the fields of a NamedTuple name any other key"


def column_changes(before: Sequence[tuple[str, str]], now: Sequence[tuple[str, str]]) -> str:
    """Return how columns, as names and types, differ: ``key (string) is gone, user (string) is new``."""
    had, has = dict(before), dict(now)
    changes = [f"{name} ({had[name]}) is gone" for name in had if name not in has]
    changes += [f"{name} ({has[name]}) is new" for name in has if name not in had]
    changes += [f"{name} is {has[name]}, was {had[name]}" for name in has if had.get(name, has[name]) != has[name]]
    return ", ".join(changes) or f"their order is {', '.join(has)}, was {', '.join(had)}"


def other_columns(table: str, actual: Sequence[tuple[str, str]], due: Sequence[tuple[str, str]]) -> CheckpointError:
    """Return the error for a table that exists with other columns than a job writes."""
    changes = column_changes(actual, due)
    return CheckpointError(
        "table-columns-differ",
        "{table} has other columns than the present code makes: {changes}. Name another table, or start a new branch",
        table=table,
        changes=changes,
    )


def changed_columns(
    before: Mapping[str, TableSpec], now: Mapping[str, TableSpec]
) -> Iterator[tuple[str, TableSpec, str]]:
    """Yield each output that has other columns in the same table: its name, the table as it is, and what differs."""
    for target, table in now.items():
        was = before.get(target)
        if target.startswith(OUTPUT) and was is not None and was.path == table.path and was.columns != table.columns:
            yield target.removeprefix(OUTPUT), was, column_changes(was.columns, table.columns)


def another_table(job: str, outputs: Sequence[str]) -> str:
    """Return what names another table for outputs, as an imperative without a full stop."""
    return f"name another table for {', '.join(outputs)} in conf/jobs/{job}.yaml"


def check_publishable(main: Branch, now: JobBinding) -> None:
    """Raise `CheckpointError` (76) if a branch of this job could not be promoted, because an output has other columns."""
    changed = list(changed_columns(main.tables, now.tables))
    if not changed:
        return
    reason = "; ".join(
        f"output {output} has other columns than {table.path}: {changes}" for output, table, changes in changed
    )
    fix = another_table(now.job, [output for output, _, _ in changed])
    raise CheckpointError(
        "branch-not-promotable",
        "job {job!r}: {reason}. Readers of that table do not expect them, so the branch could not be "
        "promoted. {fix}, then backfill{keep_key}",
        job=now.job,
        reason=reason,
        fix=fix[0].upper() + fix[1:],
        keep_key=keep_key(main, now),
    )


def keep_key(main: Branch, now: JobBinding) -> str:
    """Return how a key keeps its columns, if an output has other ones of the same types; else ``""``."""
    for output, table, _ in changed_columns(main.tables, now.tables):
        target = f"{OUTPUT}{output}"
        former = main.head.spec.binding.keys.get(target, ()) if main.head is not None else ()
        names = now.keys.get(target, ())
        had, has = dict(table.columns), dict(now.tables[target].columns)
        if former != names and [had.get(name) for name in former] == [has.get(name) for name in names]:
            lost = ", ".join(name for name, other in zip(former, names, strict=True) if name != other)
            how = "a type without fields, as in `key=str`, is called so" if lost == "key" else _TAKEN_OVER
            return (
                f". Or keep the table and the name of its key, if only that was not to change: `key=`, where the code makes the "
                f"key, declares {lost}; {how}"
            )
    return ""


def other_keys(main: Branch, now: JobBinding) -> list[str]:
    """Return the outputs whose keys have other columns than on ``main``, so that they cannot be compared key by key."""
    if main.head is None:
        return []
    before = main.head.spec.binding
    had, has = _key_columns(before), _key_columns(now)
    return [target.removeprefix(OUTPUT) for target in has if target in had and had[target] != has[target]]


def _key_columns(binding: JobBinding) -> dict[str, list[tuple[str, str]]]:
    """Return the key columns of each output with their types. Runs of earlier versions did not record them."""
    with_keys = {target: table for target, table in binding.tables.items() if target in binding.keys}
    outputs = {target: dict(table.columns) for target, table in with_keys.items()}
    return {target: [(name, columns[name]) for name in binding.keys[target]] for target, columns in outputs.items()}


def check_kept(branch: Branch, now: JobBinding) -> None:
    """Raise `CheckpointError` (76) if a branch cannot start over, because an output has other columns than it has written.

    Columns in another order are written to the same table.
    """
    for output, table, changes in changed_columns(branch.tables, now.tables):
        if sorted(table.columns) == sorted(now.tables[f"{OUTPUT}{output}"].columns):
            continue
        raise CheckpointError(
            "output-columns-changed",
            "output {output} has other columns than {table}, the table of branch {branch!r}: {changes}. "
            "Backfill on another branch; or {fix}, and this branch starts over with it",
            output=output,
            table=table.path,
            branch=branch.name,
            changes=changes,
            fix=another_table(now.job, [output]),
        )
