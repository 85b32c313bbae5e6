"""A landing engine without Spark (the same writer, but pyarrow sorts the rows), and feeds for tests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.config.feed import FeedConfig, feed_spec
from rewindow.contracts.ingest import FAR, Arrivals, LogColumns
from rewindow.contracts.source_fields import FileFields, SourceFields, fields_of_schema
from rewindow.control.ingest.land import steps
from rewindow.control.ingest.landings import LANDING
from rewindow.control.ingest.protocols import LandRequest
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.spec import Attempt
from rewindow.engine.worker.arrow_rows import arrow_type
from rewindow.engine.worker.file_fields import parquet_fields
from rewindow.engine.worker.landing.sorted_runs import ARRIVED, FAULT, PARTITION, TIMESTAMP
from rewindow.engine.worker.log_writer import write_log
from rewindow.engine.worker.source_files import look_at_files, unchanged
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.serde.schema import Column
from rewindow.tables.delta.open_table import open_table, table_path

HOUR = 3_600_000
T0 = 1_700_000_000_000 // HOUR * HOUR
TYPES = {pa.int64(): "long", pa.string(): "string", pa.string_view(): "string"}


def feed_config(**parts):
    """Return a feed with one Parquet log: key ``user``, timestamp ``t``, arrival ``got``."""
    log = {"source": {"path": "raw", "format": "parquet"}, "key": "user", "timestamp": "t", "arrived_at": "got"}
    log.update(parts.pop("log", {}))
    base = {"feed": "activity", "partitions": 3, "landing": {"every": "1h"}, "logs": {"events": log}}
    return FeedConfig.model_validate({**base, **parts})


def one_log(every=None, landing=None, **log):
    """Return a feed with one Parquet log without arrival times. ``log``: more settings of the log."""
    return FeedConfig.model_validate(
        {
            "feed": "activity",
            "partitions": 3,
            "landing": {**({"every": every} if every else {}), "max_ahead": "none", **(landing or {})},
            "logs": {
                "events": {"source": {"path": "raw", "format": "parquet"}, "key": "user", "timestamp": "t", **log}
            },
        }
    )


def write_rows(root: Path, name: str, rows) -> None:
    schema = pa.schema([("user", pa.string()), ("t", pa.int64()), ("got", pa.int64()), ("x", pa.int64())])
    path = root / "raw" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


class LocalEngine:
    """Reads Parquet files whose times are epoch milliseconds."""

    def __init__(self, project_root: Path) -> None:
        self.project_root = str(project_root)

    def look(self, spec, position):
        return look_at_files(spec, position)

    def check_unchanged(self, spec, look):
        unchanged(look, spec)

    def wrong_columns(self, spec, look):
        return None

    def columns(self, spec, look):
        schema = _renamed(pq.read_schema((*look.fresh, *look.rest)[0].path).empty_table(), spec).schema
        taken = {*spec.key, spec.timestamp, spec.arrived_at}
        values = spec.value if spec.value is not None else [name for name in schema.names if name not in taken]
        if spec.is_output:
            values = [name for name in values if not name.startswith("_")]
        key, value = (
            tuple(Column(name, TYPES[schema.field(name).type]) for name in names) for names in (spec.key, values)
        )
        return LogColumns(key, value, spec.scalar_key, spec.scalar_value, _schema_json(look))

    def fields(self, spec, columns, look):
        found = parquet_fields(spec.source, look.fresh or look.rest, look.base)
        if look.schema is not None:
            found = [FileFields(spec.source.name, fields_of_schema(json.loads(look.schema))[0])]
        known, structs, _ = fields_of_schema(json.loads(columns.source_schema))
        return SourceFields(known, structs, tuple(found), ignores_case=True)

    def intervals(self, spec, columns, look, window, intervals):
        due = self._due(spec, columns, look, replace(window, until_ms=FAR), 1)
        times = due[ARRIVED].to_pylist()
        late = [time for time in times if time is not None and time >= window.until_ms]
        starts = {None if time is None else intervals.start_of(time) for time in times if time not in late}
        return Arrivals(
            frozenset(starts), len(late), min(late, default=None), "it has no arrived_at" if None in starts else None
        )

    def later(self, spec, columns, look, until_ms):
        firsts: dict[str, Any] = {}
        for piece in (*look.rest, *look.fresh):
            arrived = self._typed(piece, spec, columns, 1)[ARRIVED]
            late = [time for time in arrived.to_pylist() if time is not None and time >= until_ms]
            firsts |= {piece.name: min(late)} if late else {}
        return firsts

    def write(self, write, look, window):
        due = self._due(write.spec, write.columns, look, window, write.partitions)
        landed = {column.name for column in write.columns.all}
        declared = [name if name in landed else f"_order_{name}" for name in write.spec.order]
        names = [PARTITION, ARRIVED, *declared, TIMESTAMP, *(c.name for c in write.columns.all)]
        # A separate column sorts nulls first, because the form of null_placement differs between pyarrow versions.
        columns: dict[str, Any] = {}
        for name in dict.fromkeys(names):
            columns |= {f"is_valid {name}": pc.is_valid(due[name]).cast(pa.int8()), name: due[name]}
        order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
        return list(write_log(write, due.take(order).to_batches(7)))

    def _due(self, spec, columns, look, window, partitions):
        through, until = window.through_ms, window.until_ms
        arrived = pc.field(ARRIVED)
        parts = []
        for pieces, is_fresh in ((look.fresh, True), (look.rest, False)):
            for piece in pieces:
                table = self._typed(piece, spec, columns, partitions)
                if until is None:
                    parts += [table] if is_fresh else []
                elif is_fresh:
                    limit = through if look.overlapping and through is not None else until
                    parts.append(table.filter((arrived < limit) | arrived.is_null()))
                elif through is not None:
                    parts.append(table.filter((arrived < until) & (arrived >= through)))
        return pa.concat_tables(parts) if parts else self._typed((*look.fresh, *look.rest)[0], spec, columns, 1)[:0]

    def _typed(self, piece, spec, columns, partitions):
        table = _renamed(pq.read_table(piece.path), spec)
        keys = zip(*(table[name].to_pylist() for name in spec.key), strict=True)
        assigned = [
            0 if spec.scalar_key and k[0] is None else partition_of(k[0] if spec.scalar_key else k, partitions)
            for k in keys
        ]
        nothing = pa.nulls(table.num_rows, pa.int64())
        arrived = table[spec.arrived_at] if spec.arrived_at else nothing
        if piece.arrival_ms is not None and not spec.arrived_at:
            arrived = pa.repeat(pa.scalar(piece.arrival_ms), table.num_rows)
        stamps = nothing if spec.extractor else arrived if spec.timestamp == "arrival" else table[spec.timestamp]
        arrays = {PARTITION: pa.array(assigned, pa.int32()), ARRIVED: arrived, TIMESTAMP: stamps}
        faults = pc.if_else(arrived.is_null(), "it has no arrived_at", None) if spec.arrived_at else None
        arrays[FAULT] = faults if faults is not None else pa.nulls(table.num_rows, pa.string())
        arrays |= {f"_order_{name}": table[name] for name in spec.order if name not in (c.name for c in columns.all)}
        return pa.table({**arrays, **{c.name: table[c.name].cast(arrow_type(c.type)) for c in columns.all}})


def _schema_json(look):
    """Return the schema of all files, or of the table, in Spark's JSON."""
    if look.schema is not None:
        return look.schema
    fields = {field.name: field.type for piece in (*look.rest, *look.fresh) for field in pq.read_schema(piece.path)}
    return json.dumps(
        {"type": "struct", "fields": [{"name": n, "type": TYPES.get(t, "string")} for n, t in fields.items()]}
    )


def _renamed(table, spec):
    return table.rename_columns([spec.renames.get(name, name) for name in table.column_names])


def land_locally(config, tables, root, now_ms, on_step=None, engine=None, attempt=None, alive=lambda _: False, **asked):
    """Land without Spark. Each call is a new attempt of a new process, and the processes of earlier calls are dead."""
    spec = feed_spec(config, project_root=str(root), warehouse=tables.warehouse)
    attempt = attempt or Attempt(id=f"{next(_NUMBERS):032x}", host="test", pid=next(_NUMBERS))
    lands: Any = engine or LocalEngine(root)
    machine = steps(spec, tables, lands, LandRequest(now_ms, **asked), attempt, alive)
    return drive(machine, on_step)


def _numbers():
    number = 0
    while True:
        number += 1
        yield number


_NUMBERS = _numbers()


def log_rows(tables, topic="events", feed="activity", generation=None):
    """Return a log's rows as dictionaries, in order of generation, partition and offset."""
    table = open_table(table_path(tables.warehouse, f"logs/{feed}/{topic}"))
    assert table is not None, topic
    rows = table.to_pyarrow_table()
    rows = rows.select(sorted(rows.column_names)).sort_by(
        [("generation", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
    )
    found = rows.to_pylist()
    return found if generation is None else [row for row in found if row["generation"] == generation]


def landings(tables, feed="activity"):
    """Return the landings in the ledger, without their attempts and files."""
    names = ("landing", "generation", "watermark", "interval", "counts", "ranges", "time")
    return [{name: row.body[name] for name in names} for row in tables.state(feed) if row.kind == LANDING]
