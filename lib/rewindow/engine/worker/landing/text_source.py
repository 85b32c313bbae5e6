"""The text files of a landing. Each file is tokenized once: types, fields, arrivals and rows all come from the same pages.

This process reads small files. It keeps their pages in memory up to a bound, and writes further pages to a scratch folder.
Large files are divided among workers, which write pages to a folder that all workers can access.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, starmap
from typing import Any

import pyarrow as pa

from rewindow.contracts.ingest import ARRIVAL, SKIP, LogColumns, LogSpec, Piece, ReadWindow, SourceLook
from rewindow.contracts.row_faults import UNREADABLE
from rewindow.contracts.source_fields import (
    FileFields,
    SourceFields,
    fields_of_schema,
    is_read,
    named_columns,
    read_schema,
)
from rewindow.contracts.text_options import CSV, TextOptions, text_options
from rewindow.engine.worker.bad_rows import BadRowsError, fix_of
from rewindow.engine.worker.file_fields import check_has, directory_columns, shown, stored_fields
from rewindow.engine.worker.landing.directories import Values, directory_values
from rewindow.engine.worker.landing.log_columns import not_a_time, source_types
from rewindow.engine.worker.landing.schema_ddl import declared_schema
from rewindow.engine.worker.landing.sorted_runs import shared_folder
from rewindow.engine.worker.landing.source_rows import ArrowSource, Portion, RowReader, due_portions, reader_of
from rewindow.engine.worker.landing.source_types import (
    INTEGERS,
    TIMES,
    UnsuitableError,
    schema_of,
    shown_type,
    with_fields,
)
from rewindow.engine.worker.source_files import COMPRESSED
from rewindow.engine.worker.text.accepted_values import ALL_KINDS, inferred_kind, kinds_of
from rewindow.engine.worker.text.file_text import BadTextError, Part
from rewindow.engine.worker.text.json_types import JsonType, Mixture, merge, mixtures, schema_type
from rewindow.engine.worker.text.pages import Page, written
from rewindow.engine.worker.text.reading import Fault, PartRead, PartReader, TextRead, header_of
from rewindow.engine.worker.text.text_rows import text_kinds
from rewindow.errors import SourceError
from rewindow.storage.locations import filesystem_of
from rewindow.storage.scratch import scratch_folder

_IN_MEMORY = 64 << 20
_ROW_BYTES = 64
"""An assumption: the bytes that a row of text takes. It is used to estimate the number of rows in a file before it is read."""
PART_BYTES = 32 << 20
"""A part of a file that a worker reads has at least this many bytes."""
OnWorkers = Callable[[TextRead, Sequence[Part], str], list[PartRead]]
"""A function that lets workers read parts of files. The workers write pages to a folder that all workers can access."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A tokenized file: its parts, in order."""

    piece: Piece
    parts: tuple[PartRead, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of their first occurrence."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.names))

    @property
    def filled(self) -> frozenset[str]:
        """The columns with a value."""
        return frozenset(name for part in self.parts for name in part.filled)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(part.rows for part in self.parts)

    def pages(self) -> Iterator[tuple[Page, int]]:
        """Yield each page with the number of the file's lines before the page's part."""
        before = 0
        for part in self.parts:
            yield from ((page, before) for page in part.pages)
            before += part.lines

    def fault(self) -> Fault | None:
        """Return the fault at which reading ended, with its line in the file (from 0); None if all lines can be read."""
        before = 0
        for part in self.parts:
            if part.fault is not None:
                return part.fault._replace(line=before + part.fault.line)
            before += part.lines
        return None


def about_rows(pieces: Iterable[Piece]) -> int:
    """Return about how many rows text files have, by their sizes."""
    return sum(_identity(piece)[1] for piece in pieces) // _ROW_BYTES


class TextFiles:
    """The files that a landing engine has tokenized, kept until the next landing begins."""

    def __init__(self, on_workers: OnWorkers | None = None, most_rows: int = 0, folder: str | None = None) -> None:
        """``on_workers`` reads the files if they have more than about ``most_rows`` rows in total.

        If it is None, this process reads all. Workers on other machines write pages to ``folder``. If it is None, all workers
        are on this machine.
        """
        self._on_workers, self._most_bytes, self._root = on_workers, most_rows * _ROW_BYTES, folder
        self._read: dict[tuple[str, str, int, Any], TextFile] = {}
        self._inferred: set[tuple[str, str, int, Any]] = set()
        """Some of the keys of `_read`: those of the files for which the types of the columns were inferred, too."""
        self._stack = ExitStack()
        self._folder = ""
        self._held = 0
        self._is_divided = False
        weakref.finalize(self, self._stack.close)

    def read(self, spec: LogSpec, pieces: Iterable[Piece], *, infers: bool = False) -> list[TextFile]:
        """Return the files of a log, tokenized. ``infers``: whether to infer the types of the columns as well.

        Raises `BadRowsError` (65) for a record that cannot be read, unless such rows are quarantined, `SourceError` (66) for
        a file that is not text, and `StorageError` (74) for a file that cannot be read.
        """
        # The key contains the topic, because several logs may read the same file with different options.
        keys = {piece: (spec.topic, *_identity(piece)) for piece in pieces}
        has = self._inferred if infers else self._read.keys()
        new = [piece for piece, key in keys.items() if key not in has]
        if new:
            read = _text_read(spec, new, infers=infers)
            size = sum(keys[piece][2] for piece in new)
            parts = [part for piece in new for part in _parts(piece, keys[piece][2], read.options)]
            if self._on_workers is not None and size > self._most_bytes:
                done, self._is_divided = self._on_workers(read, parts, self._scratch()), True
            else:
                done = [self._read_here(read, Part(piece.path)) for piece in new]
            by_path: dict[str, list[PartRead]] = {}
            for part in done:
                by_path.setdefault(part.part.path, []).append(part)
            for piece in new:
                file = TextFile(piece, tuple(by_path[piece.path]))
                _check(spec, file)
                self._read[keys[piece]] = file
                self._inferred |= {keys[piece]} if infers else set()
        return [replace(self._read[key], piece=piece) for piece, key in keys.items()]

    def are_on_workers(self, pages: Iterable[Page | None]) -> bool:
        """Return whether all pages are in files that workers can access, because workers wrote them."""
        return self._is_divided and all(page is not None and page.batch is None for page in pages)

    def forget(self) -> None:
        """Drop all tokenized files and their pages."""
        self._read.clear()
        self._inferred.clear()
        self._stack.close()
        self._folder, self._held, self._is_divided = "", 0, False

    def _read_here(self, read: TextRead, part: Part) -> PartRead:
        reader = PartReader(read, part)
        batches, pages = reader.batches(), list[Page]()
        for batch in batches:
            if self._held + batch.nbytes > _IN_MEMORY:
                pages += written(chain([batch], batches), self._scratch())
                break
            self._held += batch.nbytes
            pages.append(Page(batch.num_rows, batch))
        return reader.noted(pages)

    def _scratch(self) -> str:
        if not self._folder:
            self._folder = self._stack.enter_context(
                scratch_folder() if self._root is None else shared_folder(self._root)
            )
        return self._folder


def _identity(piece: Piece) -> tuple[str, int, Any]:
    system, location = filesystem_of(piece.path)
    info = system.get_file_info(location)
    return piece.path, info.size or 0, info.mtime_ns


def _text_read(spec: LogSpec, pieces: Sequence[Piece], *, infers: bool) -> TextRead:
    source = spec.source
    options = text_options(source.format, source.options)
    names = {}
    if source.format == CSV:
        for piece in pieces:
            names[piece.path] = csv_names(spec, piece.path, options)
    return TextRead(
        source.format, options, names, infers=infers or source.format != CSV, keeps_faults=spec.unreadable == SKIP
    )


def csv_names(spec: LogSpec, path: str, options: TextOptions) -> tuple[str, ...]:
    """Return the columns of a CSV file: the names in its header, or without a header the columns of ``schema:``."""
    try:
        names = header_of(path, options)
    except BadTextError as error:
        raise _bad(spec, path, Fault(error.line, error.reason, is_of_record=False)) from error
    if options.header or spec.source.schema is None or not names:
        return names
    return tuple(field["name"] for field in json.loads(declared_schema(spec, spec.source.schema))["fields"])


def _parts(piece: Piece, size: int, options: TextOptions) -> list[Part]:
    is_whole = size <= PART_BYTES or not options.is_divisible or piece.path.lower().endswith(COMPRESSED)
    if is_whole:
        return [Part(piece.path)]
    count = -(-size // PART_BYTES)
    bounds = [size * number // count for number in range(count)]
    return [Part(piece.path, start, end) for start, end in zip(bounds, [*bounds[1:], None], strict=True)]


def _check(spec: LogSpec, file: TextFile) -> None:
    fault = file.fault()
    if fault is not None:
        raise _bad(spec, file.piece.path, fault)


def _bad(spec: LogSpec, path: str, fault: Fault) -> BadRowsError:
    where = f"{shown(spec.source, path)}, line {fault.line + 1}"
    return BadRowsError(
        "text-row-invalid",
        "log {topic}: {where}: {reason}. {fix}",
        topic=spec.topic,
        where=where,
        reason=fault.reason,
        # `unreadable: skip` leaves out single records. It leaves out neither a header, nor bytes after which line breaks are
        # uncertain.
        fix=fix_of(UNREADABLE, spec) if fault.is_of_record else "Nothing was landed. Fix the file",
    )


def open_text(
    spec: LogSpec,
    columns: LogColumns,
    look: SourceLook,
    window: ReadWindow,
    partitions: int,
    read: Callable[[Sequence[Piece]], Sequence[TextFile]],
) -> ArrowSource:
    """Return an `ArrowSource` with the due rows of text files, which ``read`` tokenizes.

    Raises `SourceError` (66) for a file without a needed column, `ConfigError` (78) if the type of a column of times cannot
    be a time, and the errors that ``read`` raises.
    """
    types = text_types(spec, columns)
    reader = reader_of(spec, columns, types, window, partitions)
    _check_times(reader)
    portions: list[Portion] = []
    numbers = look.file_numbers()
    for due, pieces in due_portions(look, window):
        for file in read(pieces):
            values = text_directories_of(spec, file.piece.path, look.base)
            if spec.source.format == CSV:
                check_has(spec, file.piece.path, file.names, reader.needed() - set(dict(values)))
            whole = replace(
                due, piece=replace(file.piece, values=values), row_groups=(0,), file=numbers[file.piece.name]
            )
            for page, line in file.pages():
                portions.append(replace(whole, page=page, first_line=line))
                whole = replace(whole, first_row=whole.first_row + page.rows)
    rows = sum(portion.page.rows for portion in portions if portion.page is not None)
    return ArrowSource(reader, tuple(portions), rows)


def _check_times(reader: RowReader) -> None:
    spec = reader.spec
    for role, name in (("timestamp", spec.timestamp), ("arrived_at", spec.arrived_at or ARRIVAL)):
        if name == ARRIVAL or (role == "timestamp" and spec.extractor):
            continue
        kind = reader.types[reader.sources[name]]
        if kind not in (*INTEGERS, *TIMES, "date", "string"):
            raise not_a_time(spec, name, shown_type(kind))


def text_schema(spec: LogSpec, look: SourceLook, files: TextFiles) -> str:
    """Return the schema (Spark's JSON) of text files: the declared schema, or the schema inferred from the values of all files.

    Raises `DataError` (65) for a JSON field with several types, and the errors of `TextFiles.read`.
    """
    pieces = (*look.rest, *look.fresh)
    if spec.source.schema is not None:
        return _with_directories(spec, declared_schema(spec, spec.source.schema), look)
    read = files.read(spec, pieces, infers=True)
    options = text_options(spec.source.format, spec.source.options)
    types = _csv_types(read, options) if spec.source.format == CSV else _json_types(spec, read)
    return _with_directories(spec, schema_of(types), look)


def _with_directories(spec: LogSpec, schema: str, look: SourceLook) -> str:
    """Return a schema (JSON) with the columns in the names of directories added. A declared type stays.

    Raises `SourceError` (66) for such a column if the files have a column whose name differs in case only.
    """
    try:
        types = directory_types(spec, (*look.rest, *look.fresh), look.base)
        if spec.source.schema is not None:
            declared = {field["name"]: field["type"] for field in json.loads(schema)["fields"]}
            # The text in a directory's name is neither an object nor a list.
            types |= {name: declared[name] for name in types if isinstance(declared.get(name), str)}
        return with_fields(schema, types)
    except UnsuitableError as error:
        names = ", ".join(sorted({name for piece in look.fresh for name in directory_columns(piece.path, look.base)}))
        raise SourceError(
            "directory-columns-mixed",
            "log {topic}: {reason}: {columns}. Rename the directories",
            topic=spec.topic,
            reason=str(error),
            columns=names,
        ) from error


def _csv_types(files: Sequence[TextFile], options: TextOptions) -> dict[str, str]:
    spelling: dict[str, str] = {}
    kinds: dict[str, frozenset[str]] = {}
    filled: set[str] = set()
    for file in files:
        for part in file.parts:
            for name in part.names:
                spelled = spelling.setdefault(name.lower(), name)
                kinds[spelled] = kinds.get(spelled, ALL_KINDS) & (part.kinds or {}).get(name, ALL_KINDS)
                filled |= {spelled} if name in part.filled else set()
    if not options.infer:
        return dict.fromkeys(kinds, "string")
    return {name: inferred_kind(fits, is_filled=name in filled) for name, fits in kinds.items()}


def _json_types(spec: LogSpec, files: Sequence[TextFile]) -> dict[str, Any]:
    """Return the type of each field of JSON files. Raises `DataError` (65) for a field with values of several types."""
    fields: dict[str, JsonType] = {}
    for file in files:
        for name, types in _fields_of(file).items():
            fields[name] = merge(fields.get(name) or JsonType(), types)
    for name, types in fields.items():
        for mixture in mixtures(types, name):
            if _is_landed(spec, mixture.path.replace("[]", "")):
                raise _mixed(spec, mixture)
    # Spark sorts the fields by the UTF-16 code units of their names.
    return {name: schema_type(fields[name]) for name in sorted(fields, key=lambda name: name.encode("utf-16-be"))}


def _fields_of(file: TextFile) -> dict[str, JsonType]:
    """Return the types of the fields of a JSON file. An example of a type is given as a pair (path, line)."""
    fields: dict[str, JsonType] = {}
    before = 0
    for part in file.parts:
        for name, types in (part.kinds or {}).items():
            fields[name] = merge(fields.get(name) or JsonType(), _located(types, file, before))
        before += part.lines
    return fields


def _is_landed(spec: LogSpec, path: str) -> bool:
    """Return whether the log lands a field, a field nested in it, or a field that contains it."""
    if spec.value is None:
        return path.partition(".")[0] not in spec.ignore
    names = named_columns(spec)
    return is_read(path, names) or any(path.startswith(f"{name}.") for name in names)


def _located(types: JsonType, file: TextFile, before: int) -> JsonType:
    """Return ``types`` with each example as a pair (path, line from 1). ``before``: number of lines before the part."""
    return JsonType(
        {kind: (file.piece.path, before + line + 1) for kind, (_, line) in types.kinds.items()},
        {name: _located(inner, file, before) for name, inner in types.fields.items()},
        _located(types.item, file, before) if types.item else None,
    )


def _mixed(spec: LogSpec, mixture: Mixture) -> BadRowsError:
    earlier, later = (
        f"{shown_type(kind)} in {shown(spec.source, path)}, line {line}"
        for kind, (path, line) in zip(mixture.kinds, mixture.examples, strict=True)
    )
    name = mixture.path.partition(".")[0].partition("[")[0]
    return BadRowsError(
        "json-types-mixed",
        "log {topic}: the field {field} is {one}, and {other}. Nothing was landed. Write one type, or declare "
        "{column} as JSON in a `schema:` of the source, which lands any value as its text",
        topic=spec.topic,
        field=mixture.path,
        one=earlier,
        other=later,
        column=name,
    )


def text_directories_of(spec: LogSpec, path: str, base: str | None) -> Values:
    """Return the columns in the names of a file's directories. Raises `SourceError` (66) for a name without a column."""
    try:
        return directory_values(path, base)
    except UnsuitableError as error:
        raise SourceError(
            "directory-name-invalid",
            "log {topic}: {file}: {reason}. Rename the directory",
            topic=spec.topic,
            file=shown(spec.source, path),
            reason=str(error),
        ) from error


def directory_types(spec: LogSpec, pieces: Sequence[Piece], base: str | None) -> dict[str, str]:
    """Return the types of the columns in the names of directories, inferred as for columns of CSV."""
    texts: dict[str, list[str | None]] = {}
    for piece in pieces:
        for name, text in text_directories_of(spec, piece.path, base):
            texts.setdefault(name, []).append(text)
    kinds = {}
    for name, values in texts.items():
        column = pa.array(values, pa.string())
        among = ALL_KINDS - {"timestamp", "double"}
        kinds[name] = inferred_kind(
            kinds_of(column, name, TextOptions(), among), is_filled=column.null_count < len(column)
        )
    return kinds


def text_types(spec: LogSpec, columns: LogColumns) -> dict[str, Any]:
    """Return the types with which a log's text columns are read.

    The keys are the columns' names in the source, or the paths of nested fields.
    """
    schema = read_schema(spec, columns)
    types = {".".join(path): kind for path, kind in source_types(spec, schema).values()}
    return text_kinds(types)


def text_fields(spec: LogSpec, columns: LogColumns, look: SourceLook, files: TextFiles) -> SourceFields:
    """Return the fields of a log's schema, and the fields that occur in each file to land."""
    if spec.source.format == CSV:
        return stored_fields(spec, columns, look)
    of_schema, structs, _ = fields_of_schema(json.loads(columns.source_schema or "{}"))
    of_files = []
    for file in sorted(files.read(spec, look.fresh or look.rest), key=lambda file: file.piece.path):
        if not file.rows:
            continue
        fields = dict(chain.from_iterable(starmap(_paths, _fields_of(file).items())))
        empty = frozenset(path for path, has_value in fields.items() if not has_value)
        directories = directory_columns(file.piece.path, look.base)
        of_files.append(FileFields(shown(spec.source, file.piece.path), frozenset(fields.keys() | directories), empty))
    return SourceFields(of_schema, structs, tuple(of_files))


def _paths(path: str, types: JsonType) -> Iterator[tuple[str, bool]]:
    """Yield a pair (path, whether it has content) for a field and for each field nested in it.

    A field has no content if all its values are null, objects without fields, or lists of such values.
    """
    inner = types
    while inner.item is not None and inner.kinds.keys() == {"array"}:
        inner = inner.item
    yield path, bool(inner.fields) or not inner.kinds.keys() <= {"struct", "array"}
    for within in _elements(types):
        for name, field in within.fields.items():
            yield from _paths(f"{path}.{name}", field)


def _elements(types: JsonType) -> Iterator[JsonType]:
    """Yield the types of a field's values, then the types of their elements if they are lists, and so on."""
    yield types
    if types.item is not None:
        yield from _elements(types.item)
