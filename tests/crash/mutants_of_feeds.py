"""Mutants of feeds: who lands what, and what `gc` merges and sweeps of their tables."""

from __future__ import annotations

from tests.crash.mutant import Mutant
from tests.crash.probes import Hold, Kill
from tests.crash.rewriting import Rewrite

MUTANTS_OF_FEEDS = (
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
    Mutant(
        "gc of a feed: what was merged goes at once",
        [
            Rewrite(
                "delta.feed_keeper:FeedKeeper._of_log",
                "is_quiet and name in old and name not in held",
                "name not in held",
            )
        ],
        [Hold("run | gc-feed", "execute")],
    ),
    Mutant(
        "gc of a feed: merges whatever came between",
        [
            Rewrite("delta.compaction:_commit", ", max_commit_retries=0", ""),
            Rewrite("delta.compaction:_commit", "Transaction(app_id, version)", "Transaction(uuid4().hex, version)"),
        ],
        [Hold("gc-feed | gc-feed", "compact events: written")],
    ),
)
