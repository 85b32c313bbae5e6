"""Decide whether a job can resume from a checkpoint, given its stores, its outputs, and the landings that it has read. Pure.

A store is kept only if its entries still mean the same. So the store must have the same kind, key and columns, be in the same
sub-topology, and be used by the same nodes with the same description. A store with any other change is refused, because it
would silently give wrong rows.

The columns of an output table never change, because other programs read the table (ADR-132). An output with other columns needs
another table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_diff import (
    changed_parameters,
    changes_since,
    code_changes,
    removed_suppresses,
    without_edits,
)
from rewindow.control.plan.job_state import Branch, CommittedRun
from rewindow.control.plan.spec import BEGINNING, MAIN, OUTPUT, JobBinding, RunRequest, RunSpec, TableSpec
from rewindow.control.plan.zone_clocks import clock_notes
from rewindow.errors import CheckpointError, Lines, SourceError

_TAKEN_OVER = "`key=STREAM.key` takes it over from a stream, and the fields of a NamedTuple name any other key"


def column_changes(before: Sequence[tuple[str, str]], now: Sequence[tuple[str, str]]) -> str:
    """Describe how columns differ, such as ``key (string) is gone, user (string) is new``. Columns are pairs (name, type)."""
    had, has = dict(before), dict(now)
    changes = [f"{name} ({had[name]}) is gone" for name in had if name not in has]
    changes += [f"{name} ({has[name]}) is new" for name in has if name not in had]
    changes += [f"{name} is {has[name]}, was {had[name]}" for name in has if had.get(name, has[name]) != has[name]]
    return ", ".join(changes) or f"their order is {', '.join(has)}, was {', '.join(had)}"


def other_columns(table: str, actual: Sequence[tuple[str, str]], due: Sequence[tuple[str, str]]) -> CheckpointError:
    """Return the error for a table that has the columns ``actual``, although the job would write the columns ``due`` to it."""
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
    """Yield each output that has other columns in the same table: its name, its table before, and what differs."""
    for target, table in now.items():
        was = before.get(target)
        if target.startswith(OUTPUT) and was is not None and was.path == table.path and was.columns != table.columns:
            yield target.removeprefix(OUTPUT), was, column_changes(was.columns, table.columns)


def another_table(job: str, outputs: Sequence[str]) -> str:
    """Return the advice to name another table for some outputs, as an imperative without a full stop."""
    return f"name another table for {', '.join(outputs)} in conf/jobs/{job}.yaml"


def check_publishable(main: Branch, now: JobBinding) -> None:
    """Raise `CheckpointError` (76) if an output has other columns than on ``main``, so that a branch could not be promoted."""
    changed = list(changed_columns(main.tables, now.tables))
    if not changed:
        return
    reason = "; ".join(
        f"output {output} has other columns than {table.path}: {changes}" for output, table, changes in changed
    )
    raise CheckpointError(
        "branch-not-promotable",
        "job {job!r}: {reason}. Readers of that table do not expect them, so the branch could not be "
        "promoted: {fix}, then backfill{keep_key}",
        job=now.job,
        reason=reason,
        fix=another_table(now.job, [output for output, _, _ in changed]),
        keep_key=keep_key(main, now),
    )


def keep_key(main: Branch, now: JobBinding) -> str:
    """Return advice on how to keep the key columns of an output if only their names changed; otherwise ``""``."""
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
    """Return the outputs whose key columns differ from those on ``main``. They cannot be compared with ``main`` key by key."""
    if main.head is None:
        return []
    before = main.head.spec.binding
    had, has = _key_columns(before), _key_columns(now)
    return [target.removeprefix(OUTPUT) for target in has if target in had and had[target] != has[target]]


def _key_columns(binding: JobBinding) -> dict[str, list[tuple[str, str]]]:
    """Return the key columns of each output with their types."""
    # Runs of earlier versions did not record the keys of outputs.
    with_keys = {target: table for target, table in binding.tables.items() if target in binding.keys}
    outputs = {target: dict(table.columns) for target, table in with_keys.items()}
    return {target: [(name, columns[name]) for name in binding.keys[target]] for target, columns in outputs.items()}


def check_kept(branch: Branch, now: JobBinding) -> None:
    """Raise `CheckpointError` (76) if a branch cannot start over, because the columns of one of its output tables changed."""
    for output, table, changes in changed_columns(branch.tables, now.tables):
        # Rows whose columns have another order can be written to the same table.
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


class Fit(StrEnum):
    """What happens to a store when a job resumes from a checkpoint."""

    KEPT = "is kept"
    NEW = "is new and starts empty"
    REMOVED = "is removed, and its entries are lost"
    INCOMPATIBLE = "is incompatible"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to one store when a job resumes. ``why`` is the reason if the store is incompatible."""

    store: str
    fit: Fit
    why: str = ""

    def __str__(self) -> str:
        """Return the verdict as a sentence."""
        return f"store {self.store} {self.fit}" + (f": {self.why}" if self.why else "")


def verdicts(before: JobBinding, now: JobBinding) -> list[Verdict]:
    """Return a verdict for each store that the checkpoint or the present job has, sorted by the names of the stores.

    ``before`` describes the job at the checkpoint, ``now`` the present job. The buffer of a suppress is left out if adding or
    removing this suppress is no difference (`job_diff.without_edits`).
    """
    before, now = without_edits(before, now)
    result = []
    for name in sorted({**before.stores, **now.stores}):
        if name not in before.stores:
            result.append(Verdict(name, Fit.NEW))
        elif name not in now.stores:
            result.append(Verdict(name, Fit.REMOVED))
        else:
            why = "; ".join(_changes(before, now, name))
            result.append(Verdict(name, Fit.INCOMPATIBLE if why else Fit.KEPT, why))
    return result


def obstacles(before: JobBinding, now: JobBinding, tables: Mapping[str, TableSpec]) -> list[str]:
    """Return the reasons why a job cannot resume from a checkpoint; empty if it can. ``tables``: the tables of the branch."""
    before, now = without_edits(before, now)
    reasons = [str(verdict) for verdict in verdicts(before, now) if verdict.fit is Fit.INCOMPATIBLE]
    if before.feed != now.feed:
        reasons.append(f"the job reads feed {now.feed}, but the checkpoint is of feed {before.feed}")
    topics_before, topics_now = _topics(before.topology), _topics(now.topology)
    for part in sorted({**topics_before, **topics_now}):
        was, is_now = topics_before.get(part, ()), topics_now.get(part, ())
        if was != is_now:
            reasons.append(f"sub-topology {part} reads {_listed(is_now)}, but read {_listed(was)} in the checkpoint")
    for target, table in now.tables.items():
        here = tables.get(target)
        if target.startswith(OUTPUT) and here is not None and here.path != table.path:
            reasons.append(f"output {target.removeprefix(OUTPUT)} has another table: {table.path}, was {here.path}")
    for output, here, changes in changed_columns(tables, now.tables):
        reasons.append(f"output {output} has other columns than {here.path}: {changes}")
    return reasons


def _changes(before: JobBinding, now: JobBinding, store: str) -> Iterator[str]:
    if before.stores[store] != now.stores[store] or before.keys.get(store) != now.keys.get(store):
        yield "it has other columns"
    (old_part, was), (new_part, is_now) = _described(before.topology, store), _described(now.topology, store)
    if was["kind"] != is_now["kind"]:
        yield f"it was a {was['kind']} store and is a {is_now['kind']} store"
    if old_part != new_part:
        yield f"it was in sub-topology {old_part} and is in {new_part}"
    users, others = _users(before.topology, store), _users(now.topology, store)
    for node in sorted({**users, **others}):
        old, new = users.get(node), others.get(node)
        if old is None or new is None:
            yield f"node {node} {'did not use it and does' if old is None else 'used it and does not'} now"
        elif old != new:
            yield from changed_parameters(node, old, new)


def _described(topology: Sequence[Mapping[str, Any]], store: str) -> tuple[int, Mapping[str, Any]]:
    return next(
        (part["sub_topology"], stored) for part in topology for stored in part["stores"] if stored["name"] == store
    )


def _users(topology: Sequence[Mapping[str, Any]], store: str) -> dict[str, str]:
    """Return the descriptions of the nodes that use a store, by the names of the nodes."""
    return {
        node["name"]: str(node.get("processor", ""))
        for part in topology
        for node in part["nodes"]
        if store in node.get("stores", ())
    }


def _topics(topology: Sequence[Mapping[str, Any]]) -> dict[int, tuple[str, ...]]:
    return {part["sub_topology"]: topics_of(part) for part in topology}


def topics_of(part: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the topics that a sub-topology reads, given its description in the ledger."""
    return tuple(sorted(node["source"] for node in part["nodes"] if "source" in node))


def _listed(topics: Sequence[str]) -> str:
    return ", ".join(topics) or "nothing"


def check_landings(branch: Branch, feed: Feed) -> None:
    """Raise `SourceError` (66) if a branch depends on landings that the feed's generation no longer has."""
    if branch.head is not None:
        check_has_landings(branch.head, feed, branch)


def check_landings_now(branch: Branch, feed: Feed, feed_now: Callable[[str], Feed]) -> None:
    """Check a branch as `check_landings` does, if the branch was read after ``feed``.

    If the branch has processed more landings than ``feed`` has, ``feed_now`` reads the feed again. Another process may have
    landed and run in the meantime.
    """
    check_landings(branch, feed_now(feed.definition.feed) if branch.last_epoch > len(feed.landings) else feed)


def check_has_landings(head: CommittedRun, feed: Feed, branch: Branch | None = None) -> None:
    """Raise `SourceError` (66) if the feed's generation no longer has the landings that a run depends on.

    With ``branch``, the message names the run to rewind to and the epoch to backfill from.
    """
    missing = missing_landing(head.spec, feed)
    if missing is None:
        return
    job = head.spec.job
    fix = f"Replay on a new branch: `rewindow run {job} --branch NAME`"
    if branch is not None and branch.name == MAIN:
        last = next((run.spec for run in reversed(branch.runs) if has_input_of(feed, run.spec)), None)
        to, begin = (last.name, last.input.last + 1) if last else (BEGINNING, 1)
        fix = f"Rewind to the shared landings and run again: `rewindow rewind {job} --to {to}`"
        # A replay that ends before this branch's last epoch could not be promoted.
        if branch.last_epoch <= len(feed.landings):
            fix += (
                f". Or replay on a branch, then publish it: `rewindow backfill {job} --from {begin} --branch NAME`, "
                f"`rewindow promote {job} NAME`"
            )
    if head.spec.binding.feed != feed.definition.feed:
        fix += f". Or, if only the name of the feed was changed, name it {head.spec.binding.feed!r} again"
    raise SourceError("run-input-missing", "{reason}. {fix}", reason=missing, fix=fix)


def missing_landing(run: RunSpec, feed: Feed) -> str | None:
    """Describe the first landing of a run that the feed's generation no longer has; None if it has all of them."""
    if has_input_of(feed, run):
        return None
    name = feed.definition.feed
    why = f"which generation {feed.definition.generation} of feed {name!r} does not share"
    if run.input.generation == feed.definition.generation:
        why = f"but an older copy of the landing ledger of feed {name!r} was restored, which does not have this landing"
    if feed.ledger != run.input.ledger:
        why = f"but feed {name!r} was landed anew: its landing ledger is another one"
    if run.binding.feed != name:
        why = f"of feed {run.binding.feed!r}, and the job reads feed {name!r} now"
    return f"run {run.name} depends on landing {run.input.last} of generation {run.input.generation}, {why}"


def has_input_of(feed: Feed, spec: RunSpec) -> bool:
    """Return whether the feed still has the last landing that a run read."""
    if spec.input.last > len(feed.landings) or spec.input.ledger != feed.ledger:
        return False
    if spec.input.last == 0:
        return True
    landing = feed.landings[spec.input.last - 1]
    # If an older copy of a ledger was restored, new landings get the numbers of lost ones. The attempts tell them apart.
    is_same = "" in {landing.attempt, spec.input.landed_by} or landing.attempt == spec.input.landed_by
    return is_same and landing.generation <= spec.input.generation


def is_accepted_code(branch: Branch, binding: JobBinding, changes: list[str], request: RunRequest) -> bool:
    """Return whether the next run accepts changes without `--accept-changes`.

    It accepts them if only code changed. In addition, the job must have ``on_code_change: accept``, or the branch must have no
    runs of its own.
    """
    head = branch.head
    is_only_code = head is not None and changes == code_changes(head.spec.binding.code, binding.code)
    # A branch without own runs usually exists because the code changed, so it always accepts such changes.
    return is_only_code and (request.accept_code or not branch.has_own_runs)


def check_binding(branch: Branch, binding: JobBinding, request: RunRequest) -> tuple[str, ...]:
    """Return the changes since the checkpoint that the next run accepts. Raises `CheckpointError` (76) for other changes.

    The result ends with notes on changes that need no acceptance (`zone_clocks`).
    """
    head = branch.head
    if head is None:
        return ()
    changes = changes_since(branch, binding)
    held = {name: head.commit.held.get(name, 0) for name in removed_suppresses(head.spec.binding, binding)}
    lost = ", ".join(f"{name!r} holds {count} records" for name, count in held.items() if count)
    noted = (*changes, *clock_notes(head.spec.binding, binding, head.commit.zone_ends))
    if changes:
        _check_accepted(branch, binding, changes, noted, request, lost)
    if lost and not request.drop_buffered:
        raise CheckpointError(
            "suppress-removed",
            "job {job!r}: a suppress was removed or renamed, but at the end of run {run} {records}, which "
            "would be lost. If only its store was renamed, restore the name. Or put the suppress back with "
            'until_time_limit("0s") until it is empty, or pass {run_option}',
            run_option="--drop-buffered",
            job=binding.job,
            run=head.spec.name,
            records=lost,
        )
    return noted


def _check_accepted(
    branch: Branch, binding: JobBinding, changes: list[str], noted: tuple[str, ...], request: RunRequest, lost: str
) -> None:
    """Raise `CheckpointError` (76) unless the changes are compatible, and this request or the pending plan accepts them.

    ``noted``: the changes and notes that the plan of the next run would have.
    """
    head = branch.head
    if head is None:
        return
    reasons = obstacles(head.spec.binding, binding, branch.tables if branch.has_own_runs else {})
    pending = None if request.replan else branch.pending
    # The bindings are compared, too, because another edit of the same function has the same description as the accepted one.
    was_accepted = pending is not None and pending.accepted == noted and pending.binding.json == binding.json
    if not reasons and (request.accept_changes or was_accepted):
        return
    if is_accepted_code(branch, binding, changes, request):
        return
    stores = verdicts(head.spec.binding, binding)
    effects = [*(str(verdict) for verdict in stores if verdict.fit is not Fit.INCOMPATIBLE), *reasons]
    effects += [f"a removed or renamed suppress {lost}, which need --drop-buffered"] if lost else []
    replay = (
        f"recompute on a branch, `rewindow backfill {binding.job} --from 1 --branch NAME`, and publish it with "
        f"`rewindow promote {binding.job} NAME`"
    )
    renamed = [output for output, _, _ in changed_columns(branch.tables, binding.tables)] if branch.name == MAIN else []
    if renamed:
        replay = f"{another_table(binding.job, renamed)}, {replay}{keep_key(branch, binding)}"
    fix, run_option = "Restore the code and settings of that run; or ", ""
    if reasons:
        fix = f"Cannot resume from this checkpoint. {fix}"
        if branch.name == MAIN:
            replay += f". Or start over with empty tables: `rewindow reset {binding.job}`"
    else:
        fix, run_option, replay = f"{fix}resume with these changes, ", "--accept-changes", f"; or {replay}"
    raise CheckpointError(
        "job-changed-since-checkpoint",
        "job {job!r} has changed since the checkpoint of run {run}:\n{changes}{effects}{fix}{run_option}{replay}",
        job=binding.job,
        run=head.spec.name,
        changes=Lines([*(f"  - {line}" for line in changes), ""]),
        effects=Lines([f"Effect on the checkpoint: {'; '.join(effects)}.", ""] if effects else []),
        fix=fix,
        run_option=run_option,
        replay=replay,
    )
