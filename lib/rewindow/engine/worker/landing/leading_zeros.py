"""Find values with leading zeros in CSV columns that are inferred as numbers: `007` and `07` are texts, and would be one key."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator
from itertools import islice

import pyarrow as pa

from rewindow.contracts.ingest import LogSpec, SourceLook
from rewindow.engine.worker.csv_files import csv_lines, encoding_of, has_header, infers_types, lower_options
from rewindow.engine.worker.file_fields import local_files

_FILES, _LINES = 8, 1_000
"""So many files and so many of their first lines are looked at: it is a warning, and not a check."""
_LEADING_ZERO = re.compile(r"\s*[+-]?0\d+\s*")


def leading_zeros(spec: LogSpec, look: SourceLook, numbers: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the columns among ``numbers`` with such values, each with the first one. Only for CSV files without a schema."""
    source, options = spec.source, lower_options(spec.source)
    is_inferred = source.schema is None and infers_types(source)
    if not is_inferred or not has_header(source):
        return
    old, found = {new: name for name, new in (spec.renames or {}).items()}, dict[str, str]()
    for path in islice(local_files((*look.fresh, *look.rest)), _FILES):
        try:
            with pa.input_stream(str(path)) as raw, io.TextIOWrapper(raw, encoding_of(source), newline="") as text:
                rows = (row for _, row in csv_lines(text, options))
                header = next(rows, [])
                at = {name: header.index(old.get(name, name)) for name in numbers if old.get(name, name) in header}
                for row in islice(rows, _LINES):
                    zeros = ((name, row[index]) for name, index in at.items() if index < len(row))
                    found |= {
                        name: value for name, value in zeros if name not in found and _LEADING_ZERO.fullmatch(value)
                    }
        except (OSError, ValueError, LookupError, csv.Error, pa.ArrowException):
            continue  # nothing to say about this file
    yield from found.items()
