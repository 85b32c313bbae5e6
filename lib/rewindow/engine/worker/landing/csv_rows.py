"""Read CSV files with Arrow, if it reads them exactly as Spark does.

Only what both read alike is taken, which the tests compare: lines of the same number of values, quotes only around whole
values, and values in usual forms. Anything else is an `UnsuitableError`, and Spark reads the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.csv as pc_csv

from rewindow.contracts.ingest import Piece, SourceSpec
from rewindow.engine.worker.csv_files import infers_types, lower_options, positions, separator_of
from rewindow.engine.worker.landing.source_types import UnsuitableError, schema_of
from rewindow.engine.worker.landing.text_files import check_files, usual_bytes
from rewindow.engine.worker.landing.text_values import inferred_type, typed

_MOST_BYTES = 64 << 20
_SEPARATORS = (",", ";", "|", "\t")
_SUFFIXES = ("", ".csv", ".tsv", ".txt")
_NAME = re.compile(r"[^\W\d][\w ()\[\]/%&+#:?!'°€$*-]*(?<! )")
"""A letter or _ first, then also digits and these signs. Not a point: it stands between the names of nested fields."""


def check_csv(source: SourceSpec, pieces: Sequence[Piece]) -> None:
    """Raise `UnsuitableError` for options with which Arrow does not read as Spark does, and for large or compressed files."""
    options = lower_options(source)
    unknown = [name for name in source.options if name.lower() not in {"header", "inferschema", "sep", "delimiter"}]
    if unknown:
        raise UnsuitableError(f"it has the options {', '.join(sorted(unknown))}")
    if options.get("header", "true").lower() != "true" or separator_of(options) not in _SEPARATORS:
        raise UnsuitableError("it has no header, or another separator than , ; | and tab")
    check_files(pieces, _SUFFIXES, _MOST_BYTES)


def csv_schema(source: SourceSpec, pieces: Sequence[Piece]) -> str:
    """Return the schema (JSON) that Spark infers from CSV files. Raises `UnsuitableError` if that is not certain."""
    if not pieces:
        raise UnsuitableError("it has no files")
    texts = pa.concat_tables([_texts(source, piece.path) for piece in pieces], promote_options="default")
    if len({name.lower() for name in texts.column_names}) < len(texts.column_names):
        raise UnsuitableError("its files have columns that differ in case only")
    is_inferred = infers_types(source)
    return schema_of(
        {name: inferred_type(name, texts[name]) if is_inferred else "string" for name in texts.column_names}
    )


def csv_rows(source: SourceSpec, path: str, types: Mapping[str, str], zone: str) -> pa.RecordBatch:
    """Return the rows of a CSV file with the given columns, as far as it has them.

    Raises `UnsuitableError` if Spark may read them otherwise.
    """
    texts = _texts(source, path)
    at = positions(texts.column_names, types)
    if not at:
        raise UnsuitableError(f"{path} has none of the columns")
    columns = [typed(name, texts.column(index).combine_chunks(), types[name], zone) for name, index in at.items()]
    return pa.RecordBatch.from_arrays(columns, names=list(at))


def _texts(source: SourceSpec, path: str) -> pa.Table:
    """Return a file's values as texts. An empty value is null, as Spark has it; a quoted one is left to Spark."""
    data, separator = usual_bytes(path), separator_of(lower_options(source))
    if not data or data[:1].isspace() or b"\\" in data:
        raise UnsuitableError(f"{path} has no header in its first line, or an escape character")
    if b'"' in data:
        value = rb'(?:[^"' + re.escape(separator).encode() + rb']*|"[^"]+")'
        line_of_values = re.compile(value + rb"(?:" + re.escape(separator).encode() + value + rb")*\r?")
        if not all(line_of_values.fullmatch(line) for line in data.split(b"\n") if b'"' in line):
            raise UnsuitableError(f"{path} has quotes within values")
    header, _, rows = data.partition(b"\n")
    if b"\n" + header.rstrip(b"\r") in b"\n" + rows and header.rstrip(b"\r") in rows.splitlines():
        raise UnsuitableError(f"{path} has its header again")
    try:
        names = [name.strip('"') for name in header.decode().rstrip("\r").split(separator)]
        texts = pc_csv.read_csv(
            pa.BufferReader(data),
            read_options=pc_csv.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pc_csv.ParseOptions(delimiter=separator, double_quote=False),
            convert_options=pc_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except (UnicodeDecodeError, pa.ArrowException) as error:
        raise UnsuitableError(f"{path}: {error}") from error
    unusual = next((name for name in names if not _NAME.fullmatch(name)), None)
    if unusual is not None:
        raise UnsuitableError(f"{path} has the column name {unusual!r}")
    if texts.column_names != names or len({name.lower() for name in names}) < len(names):
        raise UnsuitableError(f"{path} has an unusual header")
    return texts
