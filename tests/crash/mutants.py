"""The power of the suites: mutants of the protocol, each of which some suite must see. Their kill rate is the figure."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.crash import simulation
from tests.crash.forks import answer, side_by_side
from tests.crash.matrix import folder, nothing, warm_up
from tests.crash.mutant import Mutant
from tests.crash.mutants_of_upkeep import MUTANTS_OF_UPKEEP
from tests.crash.probes import Ask, Forged, Grounds, Hold, Kill, Lose, Probe, Spoil, first_catch
from tests.crash.rewriting import Rewrite
from tests.crash.settings import Figures, Settings

LEDGER, TABLES, PUBLISH = "delta.ledger:Ledger", "delta.tables", "delta.publish"
FOLD, TRAVEL_FOLD = "plan.fold", "plan.fold_travel"
_ANY_LAST = Rewrite(f"{LEDGER}._check", " or last != len(numbers)", "")
_RENUMBERED = Rewrite(
    "delta.warehouse:DeltaTables.append",
    "return self.ledger(job).append([replace(",
    "row = replace(row, seq=len(self.ledger(job).read()) + 1)\n    return self.ledger(job).append([replace(",
)


def _without_txn(which: str) -> list[Rewrite]:
    """Commit under an id that nobody asks for, again after an exception; what returned has landed."""
    return [
        Rewrite(
            f"{TABLES}:commit_files",
            "last = table.transaction_version(app_id) or after",
            f"blind = {which!r} in app_id\n"
            "        known = table.transaction_version(app_id) or after\n"
            "        last = version - (not was_sent or failure is not None) if blind else known\n"
            "        failure = None",
        ),
        Rewrite(
            f"{TABLES}:commit_files",
            "app_id, version, closes)",
            "app_id + str(time.time_ns()) if blind else app_id, version, closes)",
        ),
    ]


def _fold(name: str, function: str, old: str, new: str) -> Mutant:
    place = f"{FOLD}:{function}" if function in ("fold_row", "_fold_plan", "_fold_commit", "_fold_fence") else ""
    return Mutant(name, [Rewrite(place or f"{TRAVEL_FOLD}:{function}", old, new)], [Forged()])


MUTANTS = (
    Mutant(
        "ledger append without txn",
        [
            Rewrite(f"{LEDGER}.append", "self._app_id, rows[-1].seq)", "uuid4().hex, rows[-1].seq)"),
            _ANY_LAST,
        ],
        [Hold("run | run", "plan > rewindow/runs: files"), Hold("run | run", "commit > rewindow/runs: files")],
    ),
    Mutant(
        "ledger: an exception means that nothing landed",
        [Rewrite(f"{LEDGER}.append", "failure = error", "return False")],
        [Ask("run", "lost")],
    ),
    Mutant(
        "ledger: no exception means that it landed",
        [
            Rewrite(
                f"{LEDGER}.append",
                "self._app_id, rows[-1].seq)\n",
                "self._app_id, rows[-1].seq)\n            return True\n",
            )
        ],
        [Ask("run", "made up")],
    ),
    Mutant(
        "ledger: whoever finds a row at its number takes it for its own",
        [Rewrite(f"{LEDGER}.append", "== texts", "!= ()")],
        [Hold("run | run", "plan > rewindow/runs: files")],
    ),
    Mutant(
        "ledger: a row that came too late takes the next number",
        [_RENUMBERED],
        [Hold("run | run", "commit > rewindow/runs"), Hold("run | run", "plan > rewindow/runs")],
    ),
    Mutant(
        "ledger: a merge forgets the newest row",
        [
            Rewrite(f"{LEDGER}._merge", "self._cells(paths)", "self._cells(paths)[:-1]"),
            Rewrite(f"{LEDGER}.append", "len(small) > _FILES_MAX", "len(small) > 2"),
        ],
        [Kill("run", "plan")],
    ),
    Mutant(
        "any commit through a handle that was not asked",
        [
            Rewrite(f"{TABLES}:commit_actions", "table.create_write", "DeltaTable(table.table_uri).create_write"),
            _ANY_LAST,
        ],
        [Hold("publish | publish", "publish"), Hold("run | run", "plan > rewindow/runs: asked")],
    ),
    Mutant("stage without txn", _without_txn("rewindow.stage"), [Ask("run", "lost")]),
    Mutant(
        "publish without txn", _without_txn("rewindow.pub"), [Kill("run", "publish output/hourly"), Ask("run", "lost")]
    ),
    Mutant(
        "publish only the newest",
        [
            Rewrite(
                f"{PUBLISH}:publish",
                "for ordinal in range(max(published + 1, due.restart.ordinal, 1), len(due.publications) + 1):",
                "for ordinal in range(max(published + 1, len(due.publications)), len(due.publications) + 1):",
            ),
            Rewrite(f"{TABLES}:commit_files", "if last != version - 1:", "if last > version - 1:"),
        ],
        [Kill("publish", "publish main")],
    ),
    Mutant(
        "publish one ordinal too few",
        [Rewrite(f"{PUBLISH}:publish", "len(due.publications) + 1)", "len(due.publications))")],
        [Kill("run", "publish")],
    ),
    Mutant(
        "publish before the COMMIT row",
        [
            Rewrite(
                "runner:_commit",
                "if tables.append(",
                "from rewindow.plan.fold import fold_row\n"
                "        guess = fold_row(state, LedgerRow(state.rows + 1, COMMIT, commit.as_json()))\n"
                "        list(tables.publish(spec.job, guess, spec.lineage))\n"
                "        if tables.append(",
            )
        ],
        [Kill("run", "commit > rewindow/runs: files")],
    ),
    Mutant(
        "recovery does not publish",
        [
            Rewrite(
                "runner:steps",
                "yield from tables.publish(job.name, tables.state(job.name), request.lineage)",
                "tables.state(job.name)",
            )
        ],
        [Kill("run", "publish")],
    ),
    Mutant(
        "no fence check before COMMIT",
        [Rewrite("runner:_commit", "check_is_pending(state, spec)", "pass")],
        [Hold("run | run", "commit")],
    ),
    Mutant(
        "the COMMIT of a fenced plan is pressed through",
        [
            Rewrite("runner:_commit", "check_is_pending(state, spec)", "pass"),
            Rewrite(
                f"{FOLD}:_fold_commit",
                "lineage = _pending_in(state, commit.run)",
                "lineage = _pending_in(state, commit.run) or next(iter(state.lineages.values()))",
            ),
            Rewrite(f"{FOLD}:_fold_commit", "or lineage.pending is None or", "or"),
        ],
        [Hold("run | run", "commit")],
    ),
    Mutant(
        "a plan does not fence",
        [Rewrite(f"{FOLD}:_fold_plan", "pending=spec)", "pending=lineage.pending or spec)")],
        [Kill("run", "execute sub"), Forged()],
    ),
    Mutant(
        "a rewind forgets to fence",
        [Rewrite(f"{TRAVEL_FOLD}:_fold_rewind", "pending=None,", "")],
        [Hold("run | rewind", "commit"), Forged()],
    ),
    Mutant(
        "a rewind takes the rows of another run",
        [Rewrite(f"{PUBLISH}:publish", "frozenset(run.spec.run for", "frozenset(run.spec.run - 2 for")],
        [Kill("rewind", "decide")],
    ),
    Mutant(
        "a rewind takes no rows",
        [Rewrite(f"{PUBLISH}:publish", "for run in publication.removes)", "for run in ())")],
        [Kill("rewind", "decide")],
    ),
    Mutant(
        "a promotion is decided once and pressed through",
        [_RENUMBERED, Rewrite(f"{TRAVEL_FOLD}:_check_head", "if head != seen:", "if False:")],
        [Hold("promote | run", "decide"), Hold("promote | rewind", "decide")],
    ),
    Mutant(
        "a promotion leaves the rows that were there",
        [Rewrite(f"{TRAVEL_FOLD}:_fold_promote", ", removes=into.runs[common:]", "")],
        [Kill("promote", "decide")],
    ),
    Mutant(
        "a promotion names the branch's files without copying them",
        [Rewrite(f"{PUBLISH}:_files", "if staged_for.path != due.table.path:", "if False:")],
        [Kill("promote", "decide")],
    ),
    Mutant(
        "a table published anew keeps what was there",
        [Rewrite(f"{PUBLISH}:_retract", "return retract_all", "return None")],
        [Kill("republish", "republish")],
    ),
    Mutant(
        "a table published anew gets what was rewound",
        [Rewrite(f"{PUBLISH}:net", "runs.pop(run.spec.run, None)", "pass")],
        [Kill("republish", "republish")],
    ),
    Mutant(
        "a table published anew leaves the old ids open",
        [Rewrite(f"{PUBLISH}:publish", "range(1, due.restart.epoch)", "range(0)")],
        [Hold("run | rewind-republish", "publish output/hourly")],
    ),
    Mutant(
        "a shared table gets the runs of one lineage",
        [
            Rewrite(
                "plan.lineage:JobState.shared",
                "tuple(run for run in change.adds if _writes(run, path))",
                "tuple(run for run in change.adds if _writes(run, path) and run.spec.lineage == 'main')",
            )
        ],
        [Kill("backfill", "commit")],
    ),
    Mutant(
        "a run stands on every run that was committed",
        [Rewrite("plan.lineage:JobState.chain_to", "return tuple(reversed(chain))", "return self.committed")],
        [Kill("backfill", "commit")],
    ),
    Mutant(
        "a run forgets what its parent changed",
        [
            Rewrite(
                "delta.checkpoints:find_checkpoint",
                "changelog_files(path, target, basis, reports, as_staged=as_staged)",
                "changelog_files(path, target, basis[:-1], reports, as_staged=as_staged)",
            )
        ],
        [Kill("run", "commit")],
    ),
    Mutant(
        "the parent is not published before it is read",
        [Rewrite("delta.warehouse:DeltaTables.restore", "if runs and", "if False and")],
        [Kill("backfill-late", "execute")],
    ),
    Mutant(
        "audit switched off",
        [Rewrite("delta.warehouse:DeltaTables.audit", "audit_files(reports, self._roots(spec, ()))", "pass")],
        [Spoil("out/hourly")],
    ),
    Mutant(
        "audit looks at sizes only",
        [Rewrite("delta.audit:_check_file", "if folder.digest(file.path) != file.file_digest:", "if False:")],
        [Spoil("out/hourly")],
    ),
    Mutant(
        "audit does not count tasks",
        [Rewrite("delta.audit:audit_counts", "if sorted(tasks) != due:", "if False:")],
        [Lose("report")],
    ),
    Mutant(
        "audit does not count records",
        [Rewrite("delta.audit:audit_counts", "if taken != wanted:", "if False:")],
        [Lose("records")],
    ),
    Mutant(
        "landing: another's row means nothing",
        [
            Rewrite(
                "landing.command:_append",
                "if not call.tables.append(call.feed.feed, rows):",
                "first = len(call.tables.rows(call.feed.feed)) + 1\n"
                "    rows = [replace(row, seq=first + n) for n, row in enumerate(rows)]\n"
                "    if not call.tables.append(call.feed.feed, rows):",
            )
        ],
        [Hold("land | land", "decide"), Hold("land | land", "plan")],
    ),
    Mutant(
        "landing: publishing begins anew each time",
        [
            Rewrite(
                "delta.logs:_publish",
                "reached = table.transaction_version(app_id) or before\n    while",
                "reached = before\n    while",
            )
        ],
        [Kill("land", "publish events"), Kill("land-more", "publish events")],
    ),
    Mutant(
        "landing: what is swept is not asked whose it is",
        [Rewrite("delta.logs:DeltaFeedTables.sweep", "if staged and staged[1] in dead:", "if staged:")],
        [Kill("land-more", "decide")],
    ),
    *MUTANTS_OF_UPKEEP,
    _fold("fold accepts a gap of numbers", "fold_row", "if row.seq != state.rows + 1:", "if row.seq < state.rows + 1:"),
    _fold("fold accepts a number twice", "fold_row", "if row.seq != state.rows + 1:", "if row.seq > state.rows + 1:"),
    _fold(
        "fold accepts a gap of epochs",
        "_fold_plan",
        "spec.first_epoch != lineage.last_epoch + 1",
        "spec.first_epoch < lineage.last_epoch + 1",
    ),
    _fold(
        "fold accepts an epoch twice",
        "_fold_plan",
        "spec.first_epoch != lineage.last_epoch + 1",
        "spec.first_epoch > lineage.last_epoch + 1",
    ),
    _fold("fold accepts another parent", "_fold_plan", "spec.parent != (head.spec.run if head else None) or ", ""),
    _fold("fold accepts another clock", "_fold_plan", "spec.clock_from_ms != lineage.watermark_ms or ", ""),
    _fold(
        "fold accepts another attempt's COMMIT", "_fold_commit", " or lineage.pending.attempt.id != commit.attempt", ""
    ),
    _fold("fold does not check the chain", "_fold_commit", "if commit.chain != chain_hash", "if False and chain_hash"),
    _fold(
        "fold does not check whom a promotion saw", "_fold_promote", '_check_head(row, into, row.body["head"])', "pass"
    ),
    _fold(
        "fold does not check whom a rewind saw", "_fold_rewind", '_check_head(row, lineage, row.body["head"])', "pass"
    ),
    _fold("fold lets a branch be promoted that is behind", "_fold_promote", "if branch.last_epoch <", "if -1 >"),
    _fold(
        "fold lets a branch go on that was promoted",
        "_fold_plan",
        "if lineage.standing is not Standing.OPEN:",
        "if False:",
    ),
    _fold("fold lets a name be used twice", "_fold_branch", "if name in state.lineages:", "if False:"),
)


def suite(settings: Settings) -> Figures:
    """See that each probe says ``ok`` on the code as it is, and some probe something else on each mutant.

    ``quick``: the mutants of the fold.
    """
    warm_up()
    chosen = [mutant for mutant in MUTANTS if not settings.quick or mutant.probes == [Forged()]]
    if settings.point:
        chosen = [mutant for mutant in chosen if settings.point in mutant.name]
    figures = Figures("mutants")
    with folder() as place:
        grounds = Grounds(place)
        probes = list(dict.fromkeys(probe for mutant in chosen for probe in mutant.probes))
        grounds.prepare(probes, settings.at_once)
        for said in side_by_side([partial(_clean, probe, grounds) for probe in probes], settings.at_once):
            figures.count(said.get("said", f"wrong: {said.get('error')}"), said.get("probe", "a probe"))
        survivors = []
        for said in side_by_side([partial(_tried, mutant, grounds) for mutant in chosen], settings.at_once):
            settings.say(
                f"mutant {said.get('name')}: {str(said.get('caught') or said.get('error') or 'SURVIVED')[:240]}"
            )
            if not said.get("caught"):
                survivors.append(said.get("name", "one that could not be made"))
                figures.count("wrong: no suite sees it", f"mutant {survivors[-1]}")
    seeds = 0 if settings.quick else 300
    said = (
        list(side_by_side([partial(seen_in_memory, name, seeds) for name in IN_MEMORY], settings.at_once))
        if seeds
        else []
    )
    power = {"killed": sum(bool(one.get("caught")) for one in said), "of": len(said)}
    figures.more = {
        "in memory": power,
        "mutants": {"killed": len(chosen) - len(survivors), "of": len(chosen)},
        "survivors": survivors,
    }
    return figures


IN_MEMORY = (
    *("ledger append without txn", "ledger: no exception means that it landed"),
    *(
        "ledger: an exception means that nothing landed",
        "ledger: whoever finds a row at its number takes it for its own",
    ),
    *("ledger: a row that came too late takes the next number", "publish without txn", "publish only the newest"),
    *("publish one ordinal too few", "publish before the COMMIT row", "no fence check before COMMIT"),
    *("the COMMIT of a fenced plan is pressed through", "a plan does not fence", "a rewind forgets to fence"),
    *(
        "a rewind takes the rows of another run",
        "a rewind takes no rows",
        "a table published anew keeps what was there",
    ),
    *("a promotion is decided once and pressed through", "a promotion leaves the rows that were there"),
    *("a promotion names the branch's files without copying them", "a table published anew gets what was rewound"),
    *("a table published anew leaves the old ids open", "a shared table gets the runs of one lineage"),
    *("a run stands on every run that was committed", "a run forgets what its parent changed"),
    *("recovery does not publish", "the parent is not published before it is read"),
)
"""Those whose code is the same on tables in memory."""


def seen_in_memory(name: str, seeds: int) -> dict[str, Any]:
    """Say whether the simulation sees a mutant, in a process of its own."""
    next(mutant for mutant in MUTANTS if mutant.name == name).apply()
    for seed in range(seeds):
        try:
            bad = [word for _, word, _ in simulation.play([seed]) if word != "ok"]
        except Exception as error:  # noqa: BLE001 - a history that cannot even be played is seen
            bad = [repr(error)]
        if bad:
            return {"name": name, "caught": f"seed {seed}: {bad[0]}"}
    return {"name": name, "caught": None}


def _clean(probe: Probe, grounds: Grounds) -> dict[str, Any]:
    caught = first_catch([probe], grounds, nothing)
    return {"probe": str(probe), "said": "ok" if caught is None else f"wrong: {caught}"}


def _tried(mutant: Mutant, grounds: Grounds) -> dict[str, Any]:
    answer(mutant.apply)  # one that cannot be made is not one that was seen
    return {"name": mutant.name, "caught": first_catch(mutant.probes, grounds, mutant.apply)}
