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
            _section("Output tables", "The table `a.b` is at `a/b`, and for a branch other than `main` at `a/b__<branch>`. The"
                     " table of `main` has the rows of all committed runs. The table of a branch has the rows of the branch's"
                     " own runs, not those of the runs of `main` from which it starts. A value without a type of its own,"
                     " such as a list from `Collect`, is in a column of JSON text: `json.loads` reads it.",
                     _columns((KEY_AND_VALUE, *OUTPUT_META))),
            _section("Logs", "`logs/<feed>/<topic>`. The landed rows. The table is partitioned by `generation` and "
                     "`partition`, which are INT.",
                     _columns((*LOG_COLUMNS, KEY_AND_VALUE))),
            _section("Changelogs", "`state/<job>/<store>/<columns>`. The stores: one row per key and run.",
                     _columns((Column(PARTITION, "long"), KEY_AND_VALUE, *CHANGELOG_META))),
            _section("rewindow/metrics", "See [Metrics](metrics.md).", _columns(METRICS)),
            _section("rewindow/quarantine", "Records that could not be used, with the reason. Rows from a landing have no "
                     "`offset`, `node` and `_run`. Rows from a run have no `arrived_at`. The rows of rewound runs stay, "
                     "and `rewindow head rewindow.quarantine` marks them.", _columns(QUARANTINE_COLUMNS)),
            _section("rewindow/expectations", "The results of the [expectations](../guides/expectations.md) of each run.",
                     _columns(EXPECTATION_COLUMNS)),
            _section("rewindow/landings and rewindow/runs", "The ledgers: the decisions about feeds and jobs, in order. "
                     "`body` is JSON. The folder `_folds` beside the rows has the state that results from most of the rows, "
                     "so that commands need not read these rows. `_checked_folds` notes which of these states `gc` has "
                     "compared with the rows. You may delete both folders, because only the rows decide.", ledger),
            _section("rewindow/journal", "The manifests: the files that each attempt staged. `report` is JSON.", journal),
            _section("rewindow_ledger of a catalog",
                     "With `commit: spark`, the ledgers and the journal are this one table, partitioned by `name` (a job, "
                     "or `feed:<feed>`). A row of a ledger has a `seq`, and its `kind` is the kind of the decision. "
                     "The rows of the journal have the kinds `report`, `block` (the bytes of a staged file, in `data`) and "
                     "`metric`. They count only if a ledger row names their attempt. "
                     "[`gc`](../guides/gc.md#in-a-catalog) deletes rows of the journal that nothing needs. `recorded_at` is "
                     "the time of the append. A row of the kind `fold`, with the name `fold:<name>`, has the state that "
                     "results from most rows of a ledger, so that commands read only the last rows. You may delete it. "
                     "`rewindow_metrics` is a view of this table. There are no changelogs.",
                     _columns(OWN_COLUMNS)),
        )
    )  # fmt: skip


def _columns(columns: Iterable[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]


def _section(title: str, text: str, columns: Iterable[tuple[str, str]]) -> str:
    rows = [(name if name == KEY_AND_VALUE.name else f"`{name}`", kind) for name, kind in columns]
    return f"## {title}\n\n{text}\n\n{table(('column', 'type'), rows)}"
