"""Wrong answers of the storage at every commit: lost, refused, made up, repeated, delayed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from rewindow.tables.delta import commit as tables
from tests.crash.forks import answer
from tests.crash.matrix import Ground, Mutate, Outcome, folder, ground, nothing, outcomes, warm_up
from tests.crash.meetings import call, compared, finish, of_main
from tests.crash.operations import OPERATIONS
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings

Commit = Callable[..., Any]

KINDS = ("lost", "lost connection", "refused", "made up", "repeated", "delayed", "late")
"""``delayed`` lands after the retry has opened the table and before it commits; ``late`` lands after the retry."""

CREATE_KINDS = ("lost", "refused", "made up")


class Answers:
    """Passes commits on, except number ``victim`` (counted from 0), which gets an answer of this kind."""

    def __init__(self, victim: int, kind: str) -> None:
        self._victim, self._kind = victim, kind
        self._late: list[tuple[str, Callable[[], Any]]] = []
        self.passed: list[str] = []
        self.was_met = False

    def install(self) -> None:
        """Intercept all commits of this process from now on."""
        commit, create, append = DeltaTable.create_write_transaction, DeltaTable.create, tables.append_commit  # type: ignore[attr-defined]

        @wraps(commit)
        def committing(table: DeltaTable, *args: Any, **kwargs: Any) -> None:
            self._sent(partial(commit, table, *args, **kwargs), table.table_uri)

        @wraps(append)
        def appending(path: str, table: DeltaTable, *args: Any) -> None:
            self._sent(partial(append, path, table, *args), table.table_uri)

        @wraps(create)
        def creating(path: str, *args: Any, **kwargs: Any) -> Any:
            return self._answered(partial(create, path, *args, **kwargs), str(path), "create")

        tables.append_commit = appending  # type: ignore[attr-defined,assignment]
        DeltaTable.create_write_transaction = committing  # type: ignore[method-assign,assignment]
        DeltaTable.create = staticmethod(creating)  # type: ignore[method-assign,assignment]

    def _sent(self, send: Callable[[], Any], where: str) -> None:
        waiting = [late for there, late in self._late if there == where]
        if waiting:
            self._late.clear()
            order = [*waiting, send] if self._kind == "delayed" else [send, *waiting]
            _all(order, send)
            return
        self._answered(send, where, "commit")

    def _answered(self, send: Callable[[], Any], where: str, what: str) -> Any:
        self.passed.append(what)
        if len(self.passed) - 1 != self._victim:
            return send()
        self.was_met = True
        match self._kind:
            case "lost" | "lost connection":
                send()
            case "made up":
                return None
            case "repeated":
                send()
                with suppress(Exception):
                    send()
                return None
            case "delayed" | "late":
                self._late.append((where, send))
        if self._kind in ("lost", "refused"):
            message = "Failed to commit transaction: the version is there"
            raise CommitFailedError(message)
        message = "the connection was closed"
        raise OSError(message)


def _all(sends: Sequence[Callable[[], Any]], own: Callable[[], Any]) -> None:
    """Send several commits one after another. The caller gets only its own error."""
    failure: Exception | None = None
    for send in sends:
        try:
            send()
        except Exception as error:  # noqa: BLE001 - the caller's own error is raised below
            failure = error if send is own else failure
    if failure is not None:
        raise failure


def commits_of(operation: str, prepared: Ground) -> list[str]:
    """Return what a clean call sends, in order: ``commit`` or ``create``."""
    with folder() as root:
        shutil.copytree(prepared.folder, f"{root}/w")

        def clean() -> list[str]:
            answers = Answers(-1, "none")
            answers.install()
            call(f"{root}/w", operation)
            return answers.passed

        found: list[str] = answer(clean)
        return found


def ask(operation: str, prepared: Ground, victim: int, kind: str, mutate: Mutate = nothing) -> Outcome:
    """Make one call in which one commit gets this answer, then compare the tables."""
    site = f"{victim} {kind}"
    with folder() as root:
        warehouse = f"{root}/w"
        shutil.copytree(prepared.folder, warehouse)

        def asking() -> list[Any]:
            mutate()
            answers = Answers(victim, kind)
            answers.install()
            said = call(warehouse, operation)
            if said.startswith("StorageError") and answers.passed[victim:][:1] == ["create"] and kind != "lost":
                said = call(warehouse, operation)  # the error of a missing table is 74: try again
            return [said, answers.was_met]

        try:
            said, was_met = answer(asking)
        except RuntimeError as error:
            return Outcome(operation, 0, site, f"wrong: {str(error)[-300:]}")
        if not was_met:
            return Outcome(operation, 0, site, "not reached: the call sends fewer commits")
        if said != "done":
            return Outcome(operation, 0, site, f"wrong: the call said {said}")
        return Outcome(operation, 0, site, compared(warehouse, [said], of_main(prepared.expected), mutate))


NAMES = ("first-run", "run", "land", "rewind", "backfill", "promote", "republish", "publish")


def suite(settings: Settings) -> Figures:
    """Give each wrong answer at every commit of every operation. ``quick``: of one operation."""
    figures, results = Figures("answers"), Results.of("answers", settings.results)
    warm_up()
    for name in ("run",) if settings.quick else NAMES:
        with folder() as root:
            prepared = ground(root, OPERATIONS[name], 0, then=finish)
            sent = commits_of(name, prepared)
            kinds = ("lost", "delayed") if settings.quick else KINDS
            cases = [
                (n, kind) for n, what in enumerate(sent) for kind in kinds if what == "commit" or kind in CREATE_KINDS
            ]
            left = [case for case in cases if not results.knows(name, 0, f"{case[0]} {case[1]}")]
            jobs = [partial(ask, name, prepared, *case) for case in left]
            results.keep(outcomes(jobs, settings.at_once), settings.say)
            for number, kind in cases:
                figures.count(results.said[name, 0, f"{number} {kind}"], f"{name}: commit {number} {kind}")
    figures.more = {"kinds": len(KINDS)}
    return figures
