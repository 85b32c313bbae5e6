"""Read text files as a landing does, up to the values: whole, in small blocks, or divided into parts."""

import base64
import json
from pathlib import Path

import pyarrow as pa

from rewindow.config.feed import SourceConfig
from rewindow.contracts.ingest import FAIL, LogSpec, Piece, SourceLook, SourceSpec
from rewindow.contracts.text_options import CSV, text_options
from rewindow.engine.worker.file_fields import check_has
from rewindow.engine.worker.landing import text_source
from rewindow.engine.worker.landing.text_source import TextFiles, text_schema
from rewindow.engine.worker.text import reading
from rewindow.engine.worker.text.reading import read_into
from rewindow.engine.worker.text.text_rows import TextRows, text_kinds
from rewindow.streams.serde.canonical_json import load_value

_SQL = {"long": "BIGINT", "string": "STRING"}


def log_spec(case, folder, *, unreadable=FAIL):
    config = SourceConfig.model_validate(
        {"path": str(folder), "format": case.format, "schema": case.schema, "options": case.options}
    )
    source = SourceSpec(case.format, str(folder), str(folder), config.options, case.schema)
    return LogSpec("log", source, (), True, None, False, "at", zone=case.zone, unreadable=unreadable)


def write_case(case, folder: Path):
    for name, content in case.files.items():
        folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_bytes(content)


def read_case(case, folder: Path, mode, monkeypatch, *, unreadable=FAIL):
    """Return the rows and the types of a case whose files are in the folder; a refusal is raised."""
    spec = log_spec(case, folder, unreadable=unreadable)
    text_options(case.format, spec.source.options)
    workers = None
    if mode != "whole":
        monkeypatch.setattr(reading, "BLOCK_BYTES", 24)
    if mode == "divided":
        largest = max(map(len, case.files.values()))
        monkeypatch.setattr(text_source, "PART_BYTES", max(16, largest // 50))
        pages = folder.parent / "pages"
        pages.mkdir(exist_ok=True)

        def workers(read, parts, _folder):
            return [read_into(read, part, str(pages)) for part in parts]

    texts = TextFiles(workers, 0)
    pieces = tuple(Piece(str(folder / name), name=name) for name in case.files)
    look = SourceLook({}, pieces)
    schema = text_schema(spec, look, texts)
    fields = {field["name"]: field["type"] for field in json.loads(schema)["fields"]}
    kinds = text_kinds(fields)
    rows = []
    for file in texts.read(spec, pieces):
        if case.format == CSV:
            check_has(spec, file.piece.path, file.names, fields)
        for page, first_line in file.pages():
            found = TextRows(spec, kinds, frozenset(), page.read(), file.piece, first_line)
            columns = {name: [value_of(one, kinds[name]) for one in _listed(found.column(name))] for name in kinds}
            rows += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows, {name: sql_of(kind) for name, kind in fields.items()}


def _listed(column):
    if pa.types.is_timestamp(column.type):
        return [None if us is None else us // 1000 for us in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_date(column.type):
        return column.cast(pa.string()).to_pylist()
    return column.to_pylist()


def value_of(value, kind):
    if isinstance(kind, dict) and value is not None:
        return _nested(load_value(value), kind)
    return value


def _nested(value, kind):
    if value is None:
        return None
    match kind:
        case {"type": "struct", "fields": fields}:
            found = value._asdict() if hasattr(value, "_asdict") else value
            return {field["name"]: _nested(found[field["name"]], field["type"]) for field in fields}
        case {"type": "array", "elementType": inner}:
            return [_nested(item, inner) for item in value]
        case {"type": "map", "valueType": inner}:
            return {key: _nested(item, inner) for key, item in value.items()}
        case "binary":
            return base64.b64decode(value)
    return value


def sql_of(kind):
    match kind:
        case {"type": "struct", "fields": fields}:
            return f"STRUCT<{', '.join(field['name'] + ': ' + sql_of(field['type']) for field in fields)}>"
        case {"type": "array", "elementType": inner}:
            return f"ARRAY<{sql_of(inner)}>"
        case {"type": "map", "valueType": inner}:
            return f"MAP<STRING, {sql_of(inner)}>"
    return _SQL.get(kind, kind.upper())
