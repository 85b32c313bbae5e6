"""The page of tables, from the columns that the code writes."""

from __future__ import annotations

from collections.abc import Iterable

from rewindow.contracts.expectations import EXPECTATION_COLUMNS
from rewindow.contracts.reserved_names import LOG_COLUMNS, QUARANTINE_COLUMNS
from rewindow.contracts.staged_files import METRICS
from rewindow.streams.serde.schema import CHANGELOG_META, OUTPUT_META, PARTITION, Column
from rewindow.tables.delta.journal import _SCHEMA as JOURNAL
from rewindow.tables.delta.ledger import _SCHEMA as LEDGER
from rewindow.tables.governed.own_table import COLUMNS as OWN_COLUMNS
from tests.docs.markdown import GENERATED, table

HEAD = f"""\
# Tables

A target names a warehouse: a folder or a URI. All tables are Delta tables in it. Anything that reads Delta may read them; only
rewindow may write them. Times are epoch milliseconds. With a [catalog](../deployment/databricks.md#governed-tables) the same
tables have names instead of paths. [Design](../internals/design.md#where-tables-are) has their partitions.

{GENERATED}
"""
KEY_AND_VALUE = Column("key and value columns", "as declared")


def page() -> str:
    """Return the text of the page."""
    ledger = [(field.name, str(field.type)) for field in LEDGER]
    journal = [(field.name, str(field.type)) for field in JOURNAL]
    return HEAD + "\n".join(
        (
            _section("Output tables", "`a/b` for the table `a.b`; `a/b__<branch>` on a branch other than `main`. It has the"
                     " rows of all committed runs; that of a branch those of its own runs, not of the runs of main before"
                     " it begins. A list, as `Collect` makes it, or another value without"
                     " a type of its own is a column of JSON text: `json.loads` reads it.",
                     _columns((KEY_AND_VALUE, *OUTPUT_META))),
            _section("Logs", "`logs/<feed>/<topic>`. The landed rows. Partitioned by `generation` and "
                     "`partition`, which are INT.",
                     _columns((*LOG_COLUMNS, KEY_AND_VALUE))),
            _section("Changelogs", "`state/<job>/<store>/<columns>`. The stores: one row per key and run.",
                     _columns((Column(PARTITION, "long"), KEY_AND_VALUE, *CHANGELOG_META))),
            _section("rewindow/metrics", "See [Metrics](metrics.md).", _columns(METRICS)),
            _section("rewindow/quarantine", "Records that were put aside, with the reason. Rows of a landing have no `offset`, "
                     "`node` and `_run`; rows of a job have no `arrived_at`. The rows of runs that were taken back stay: "
                     "`rewindow head rewindow.quarantine` marks them.", _columns(QUARANTINE_COLUMNS)),
            _section("rewindow/expectations", "What was observed of the [expectations](../guides/expectations.md) of each run.",
                     _columns(EXPECTATION_COLUMNS)),
            _section("rewindow/landings and rewindow/runs", "The ledgers: the decisions about feeds and jobs, in order. "
                     "`body` is JSON. The folder `_folds` beside the rows has the state that most of them give, so that "
                     "commands need not read these rows. `_checked_folds` notes which stored state `gc` has compared with the "
                     "rows. You may delete both folders, because only the rows decide.", ledger),
            _section("rewindow/journal", "The manifests: the files that each attempt staged. `report` is JSON.", journal),
            _section("rewindow_ledger of a catalog",
                     "With `commit: spark`, the ledgers and the journal are this one table, partitioned by `name` (a job, "
                     "or `feed:<feed>`). A row of a ledger has its kind in `kind`, and a `seq`. The other kinds are "
                     "`report`, `block` (the bytes of a staged file, in `data`) and `metric`. Rows of the journal count "
                     "only if a ledger row names their attempt, and [`gc`](../guides/gc.md#in-a-catalog) deletes those "
                     "that nothing needs. `recorded_at` is the time of the append. A row of the kind `fold` in "
                     "`fold:<name>` has the state that most rows of a ledger give, so that commands read only the last "
                     "rows. You may delete it. `rewindow_metrics` is a view of this table; there are no changelogs.",
                     _columns(OWN_COLUMNS)),
        )
    )  # fmt: skip


def _columns(columns: Iterable[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]


def _section(title: str, text: str, columns: Iterable[tuple[str, str]]) -> str:
    rows = [(name if name == KEY_AND_VALUE.name else f"`{name}`", kind) for name, kind in columns]
    return f"## {title}\n\n{text}\n\n{table(('column', 'type'), rows)}"
