"""Refuse files whose fields are not those that are landed. Pure.

A reader that is told a schema lands null for a field that a file lacks, and nothing for a field that it does not expect. A
renamed field is both. So a new file must have every field that all landed files have, and no field that none of them has,
unless the feed's file says otherwise (``optional``, ``ignore``; ADR-77).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from rewindow.config.feed_spec import TABLE_FORMATS
from rewindow.contracts.ingest import ARRIVAL, LogColumns, LogSpec
from rewindow.contracts.source_fields import FileFields, SourceFields, parent_of
from rewindow.errors import ConfigError, SourceError

_GENERATION = "`rewindow land FEED --new-generation`"


@dataclass(frozen=True, slots=True)
class LandedFields:
    """The fields that all landed files have, and those that some have although the declared schema leaves them out.

    For CSV, whose columns are read by position, ``always`` is the header.
    """

    always: tuple[str, ...]
    others: tuple[str, ...] = ()

    def as_json(self) -> dict[str, list[str]]:
        """Return the JSON form."""
        return {"always": list(self.always), "others": list(self.others)}


def landed_fields(position: Mapping[str, Any] | None) -> LandedFields | None:
    """Return the fields that a source's position records; None if it records none."""
    fields = (position or {}).get("fields")
    return LandedFields(tuple(fields["always"]), tuple(fields["others"])) if fields else None


def check_fields(
    spec: LogSpec, columns: LogColumns, found: SourceFields, before: LandedFields | None
) -> LandedFields | None:
    """Return the fields of all landed files, including the given ones; None if the source has none to compare.

    ``before`` is None in a first landing, in which every file must have the columns that the configuration names. Raises
    `SourceError` (66) for a file with other fields.
    """
    if not found.files:
        return before
    headers = [file for file in found.files if file.header is not None]
    if headers:
        if before is None and spec.source.schema is not None:
            _check_declared(spec, columns, headers[0])
        return LandedFields(_check_headers(spec, headers, before.always if before else None))
    fold = str.lower if found.ignores_case else str
    known = {fold(field) for field in found.known}
    structs = {fold(field) for field in found.structs}
    ignored, optional = ({fold(field) for field in names} for names in (spec.ignore, spec.optional))
    landed = {fold(name) for name in _landed_columns(spec, columns)}
    named = {fold(name) for name in _named_columns(spec)}
    kept = None if before is None else {fold(field) for field in before.always}
    others = set(before.others if before else ())
    for file in found.files:
        present = {fold(field): field for field in file.present}
        new = [f for f in present if f not in known and not _is_within(f, ignored) and _is_listed(f, known, structs)]
        if before is None and spec.source.schema is not None:  # the declared schema selects the fields to land
            others |= {*new}
        new = [f for f in new if not _is_within(f, others)]
        needed = named if kept is None else {f for f in kept if f.split(".")[0] in landed}
        without = {fold(field) for field in file.empty}
        gone = [f for f in needed if f not in present and not _is_within(f, optional) and not _is_within(f, without)]
        first_new = present[min(new, key=_depth)] if new else None
        if gone:
            raise _missing(spec, file, min(gone, key=_depth), first_new, is_first=kept is None)
        if first_new is not None:
            raise _unknown(spec, file, first_new, known)
    seen = known if kept is None else kept
    for file in found.files:
        present_now = {fold(field) for field in file.present}
        without = {fold(field) for field in file.empty}
        seen = {field for field in seen if field in present_now or _is_within(field, without)}
    return LandedFields(tuple(sorted(seen)), tuple(sorted(others)))


def _check_declared(spec: LogSpec, columns: LogColumns, file: FileFields) -> None:
    """Refuse a declared schema with the columns of a CSV file in another order. Other names are taken as renames."""
    declared = [field["name"] for field in json.loads(columns.source_schema or "{}").get("fields", ())]
    header = [name.lower() for name in file.header or ()]
    names = [name.lower() for name in declared]
    if names != header and sorted(names) == sorted(header):
        message = (
            f"log {spec.topic}: `schema:` lists the columns of {file.name} in another order ({', '.join(declared)}) than its "
            f"header ({', '.join(file.header or ())}), but CSV columns are read by position: use the order of the header"
        )
        raise ConfigError(message)


def _check_headers(spec: LogSpec, files: Sequence[FileFields], always: Sequence[str] | None) -> tuple[str, ...]:
    """Compare the headers of CSV files: Spark reads columns by position, so names and order must be the same."""
    first = tuple(always) if always is not None else files[0].header or ()
    like = files[0].name if always is None else "the landed files"
    for file in files:
        header = file.header or ()
        if [name.lower() for name in header] == [name.lower() for name in first]:
            continue
        names, landed = ({name.lower() for name in one} for one in (header, first))
        what = "the columns in another order" if names == landed else "other columns"
        stray = (
            ""
            if len(names & landed) * 2 > len(landed)
            else "Is it a file of this log? If not, move it to another folder. "
        )
        message = (
            f"log {spec.topic}: {file.name} has {what} ({', '.join(header)}) than {like} ({', '.join(first)}). "
            f"Nothing was landed. {stray}CSV columns are read by position: write all files with one header"
            + (
                ""
                if always is None
                else f". To take other columns, write the landed files anew, too, and {_GENERATION}"
            )
        )
        raise SourceError(message)
    return first


def _missing(spec: LogSpec, file: FileFields, field: str, new: str | None, *, is_first: bool) -> SourceError:
    has = "which the configuration names" if is_first else f"which {_landed(spec, 'all')}"
    hint = f" It has {new}, which {_landed(spec, 'no')}: was {field} renamed?" if new and not is_first else ""
    message = (
        f"log {spec.topic}: {file.name} has no {field}, {has}.{hint} Nothing was landed. Fix the file, or set "
        f"`optional: [{field}]` to land null where it is missing"
        + ("" if is_first else f", or land everything again: {_GENERATION}")
    )
    return SourceError(message)


def _unknown(spec: LogSpec, file: FileFields, field: str, known: Iterable[str]) -> SourceError:
    close = get_close_matches(field, sorted(known), n=1)
    hint = f" Is it {close[0]}?" if close else ""
    message = (
        f"log {spec.topic}: {file.name} has the field {field}, which {_landed(spec, 'no')}.{hint} Nothing was landed. Fix the "
        f"file, or set `ignore: [{field}]` to leave it out, or land everything again with it: {_GENERATION}"
    )
    return SourceError(message)


def _landed(spec: LogSpec, which: str) -> str:
    """Return that all, or no, landed files have a field. A table has one schema for all of its files."""
    if spec.source.format in TABLE_FORMATS:
        return "is landed" if which == "all" else "is not landed"
    return "all landed files have" if which == "all" else "no landed file has"


def _landed_columns(spec: LogSpec, columns: LogColumns) -> set[str]:
    """Return the source's names of all columns that rows are made of."""
    old = {new: name for name, new in (spec.renames or {}).items()}
    names = {column.name for column in columns.all} | _named(spec)
    return {old.get(name, name) for name in sorted(names)}


def _named_columns(spec: LogSpec) -> set[str]:
    """Return the source's names of the columns that the configuration names."""
    old = {new: name for name, new in (spec.renames or {}).items()}
    return {old.get(name, name) for name in sorted(_named(spec) | {*(spec.value or ())})}


def _named(spec: LogSpec) -> set[str]:
    names = {*spec.key, *spec.order, *(spec.source_offsets or ())}
    names |= {spec.arrived_at} if spec.arrived_at else set()
    return names if spec.timestamp == ARRIVAL or spec.extractor else names | {spec.timestamp}


def _is_listed(field: str, known: set[str], structs: set[str]) -> bool:
    """Return whether the schema lists the fields of a field's parent, so that an unlisted one is unknown."""
    if "." not in field:
        return True
    parent = parent_of(field, frozenset(known))
    return parent in structs if parent else False


def _is_within(field: str, others: set[str]) -> bool:
    """Return whether a field is one of others, or nested in one."""
    return field in others or any(field.startswith(f"{other}.") for other in others)


def _depth(field: str) -> tuple[int, str]:
    return field.count("."), field
