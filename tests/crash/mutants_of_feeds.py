"""Mutants of feeds: who lands what, and what `gc` merges and removes in their tables."""

from __future__ import annotations

from tests.crash.mutant import Mutant
from tests.crash.probes import Hold, Kill
from tests.crash.rewriting import Rewrite

MUTANTS_OF_FEEDS = (
    Mutant(
        "landing: another's row means nothing",
        [
            Rewrite(
                "control.ingest.land:_append",
                "raise _overtaken(call)",
                "rows[:] = [replace(row, seq=seq) for seq, row in enumerate(rows, start=len(ledger) + 1)]",
            )
        ],
        [Hold("land | land", "decide"), Hold("land | land", "plan")],
    ),
    Mutant(
        "landing: a new generation that was interrupted is started again",
        [Rewrite("control.ingest.land:_land_steps", "if repeated:", "if False:")],
        [Kill("land-again", "publish events")],
    ),
    Mutant(
        "landing: publishing begins anew each time",
        [
            Rewrite(
                "tables.delta.feeds:_publish",
                "reached = table.transaction_version(app_id) or before\n    while",
                "reached = before\n    while",
            )
        ],
        [Kill("land", "publish events"), Kill("land-more", "publish events")],
    ),
    Mutant(
        "landing: orphan files of other attempts are removed too",
        [
            Rewrite("tables.delta.feeds:_files_of", " and staged[1] in attempts", ""),
            Rewrite(
                "tables.delta.feeds:DeltaFeedTables.remove_orphans",
                "table = open_table(root) if paths else None",
                "table = None",
            ),
        ],
        [Kill("land-more", "decide")],
    ),
    Mutant(
        "gc of a feed: what was merged goes at once",
        [
            Rewrite(
                "tables.delta.gc:FeedGc._of_log",
                "is_quiet and name not in held and unnamed.is_left(name, max(keep_ms, UNKNOWN_MS))",
                "name not in held",
            )
        ],
        [Hold("run | gc-feed", "execute")],
    ),
    Mutant(
        "gc of a feed: merges whatever came between",
        [
            Rewrite("tables.delta.merging:_commit", ", max_commit_retries=0", ""),
            Rewrite(
                "tables.delta.merging:_commit", "Transaction(app_id, version)", "Transaction(uuid4().hex, version)"
            ),
        ],
        [Hold("gc-feed | gc-feed", "compact events: written")],
    ),
)
