"""Refuse new files whose fields differ from the landed fields. Pure.

A reader with a schema lands null for a field that a file lacks, and skips a field that is not in the schema. If a field is
renamed in the files, both happen. So a new file is refused if it lacks a field that all landed files have, or if it has a new
field that would be landed. ``optional`` and ``ignore`` in the feed's file allow such files (ADR-77).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import JOB, LogColumns, LogSpec
from rewindow.contracts.source_fields import (
    FileFields,
    SourceFields,
    is_read,
    named_columns,
    parent_of,
    read_columns,
    role_of,
    separator_in,
    written,
)
from rewindow.errors import Lines, RewindowError, SourceError

_GENERATION = "`rewindow land FEED --new-generation`"
_LIKE_LANDED = "Write the file with the header and the separator of the landed files"


@dataclass(frozen=True, slots=True)
class LandedFields:
    """The fields of landed files. ``always``: the fields that all landed files have. ``others``: fields that are not landed.

    For CSV files, ``always`` has the order of the first header. This version ignores the order. But the first 0.2 versions
    refuse files whose order differs from the order that the last landing recorded.
    """

    always: tuple[str, ...]
    others: tuple[str, ...] = ()

    def as_json(self) -> dict[str, list[str]]:
        """Return the JSON form."""
        return {"always": list(self.always), "others": list(self.others)}


def landed_fields(position: Mapping[str, Any] | None) -> LandedFields | None:
    """Return the fields that a source's position records; None if there is no position, or if it records no fields."""
    fields = (position or {}).get("fields")
    return LandedFields(tuple(fields["always"]), tuple(fields["others"])) if fields else None


def check_fields(
    spec: LogSpec, columns: LogColumns, fields: SourceFields, before: LandedFields | None, *, landings: int = 0
) -> LandedFields | None:
    """Return the fields of all landed files, including the given ones; None if the source has no fields to compare.

    ``before`` is None in a first landing. ``landings`` is the number of landings so far. Raises `SourceError` (66) for a file
    that lacks a landed field, or that has a new field which would have to be landed or may be a renamed field.
    """
    if not fields.files:
        return before
    rules = _Rules(spec, columns, fields, before, landings)
    others = set(before.others if before else ())
    for file in fields.files:
        others |= rules.checked(file, others)
    headers = [file.header for file in fields.files if file.header]
    kept: Collection[str] = (headers[0] if headers else fields.known) if before is None else before.always
    common = {rules.fold(field) for field in kept}
    for file in fields.files:
        present_now = {rules.fold(field) for field in file.present}
        without = {rules.fold(field) for field in file.empty}
        common = {field for field in sorted(common) if field in present_now or _is_within(field, without)}
    always = (field for field in kept if rules.fold(field) in common) if headers else sorted(common)
    return LandedFields(tuple(always), tuple(sorted(others)))


def raise_all(feed: str, problems: Sequence[RewindowError]) -> None:
    """Raise all problems as one error with the class of the first problem. Without problems, do nothing."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise type(problems[0])(
            "feed-problems",
            "feed {feed} has {count} problems:\n{problems}",
            feed=feed,
            count=len(problems),
            problems=Lines(f"- {problem}" for problem in problems),
        ) from problems[0]


class _Rules:
    """The rules that say which fields a file must have, and which it must not have (ADR-77).

    If the configuration selects fields (``value`` or ``schema``), a new field is not landed. It is allowed, unless it may be
    the new name of a landed field that the file lacks. Without a selection, all fields are landed.
    """

    def __init__(
        self, spec: LogSpec, columns: LogColumns, fields: SourceFields, before: LandedFields | None, landings: int
    ) -> None:
        self._spec, self._before, self._landings = spec, before, landings
        self.fold: Callable[[str], str] = str.lower if fields.ignores_case else str
        self._known, self._structs = self._folded(fields.known), self._folded(fields.structs)
        self._ignored, self._optional = self._folded(spec.ignore), self._folded(spec.optional)
        self._present = {self.fold(field) for file in fields.files for field in file.present}
        self._landed = self._folded(read_columns(spec, columns))
        # Messages spell a name as the files do, or else as the feed's file does. A later name here replaces an earlier one.
        names = (*named_columns(spec), *read_columns(spec, columns), *fields.known, *(before.always if before else ()))
        self._written = {self.fold(name): name for name in names}
        self._selects = spec.value is not None or spec.source.schema is not None
        if spec.source.format == "csv":
            self._needed = self._landed
        elif before is None:
            self._needed = self._folded(named_columns(spec))
        else:
            self._needed = {field for field in self._folded(before.always) if self._is_landed(field)}

    def checked(self, file: FileFields, others: set[str]) -> set[str]:
        """Return the fields of a file that are new and not landed. Raises `SourceError` (66) for wrong fields.

        ``others``: the new fields of files that were checked before.
        """
        present = {self.fold(field): field for field in file.present}
        without = self._folded(file.empty)
        gone = [
            field
            for field in self._needed
            if field not in present and not _is_within(field, self._optional) and not _is_within(field, without)
        ]
        new = [
            field
            for field in present
            if field not in self._known
            and not _is_within(field, self._ignored | others)
            and _is_listed(field, self._known, self._structs)
        ]
        carried = [field for field in new if not self._is_unused(field)]
        if gone:
            raise self._missing(file, gone, {name: present[name] for name in new})
        if carried:
            raise self._unknown(file, present[min(carried, key=_depth)])
        lacks = [
            field
            for field in self._known
            if self._is_landed(field) and field not in present and not _is_within(field, without)
        ]
        if new and lacks and self._before is not None:
            raise self._renamed(file, present[min(new, key=_depth)], self._written[min(lacks, key=_depth)])
        return {*new}

    def _folded(self, names: Iterable[str]) -> set[str]:
        return {self.fold(name) for name in names}

    def _is_landed(self, field: str) -> bool:
        return is_read(field.split(".", maxsplit=1)[0], self._landed)

    def _is_unused(self, field: str) -> bool:
        """Return whether a new field would not be landed.

        A ``schema`` selects fields, but ``value`` selects only whole columns.
        """
        if self._spec.source.schema is not None:
            return True
        return not self._is_landed(field) if "." in field else self._selects

    def _missing(self, file: FileFields, gone: Collection[str], new: Mapping[str, str]) -> SourceError:
        """Return the error for a file that lacks the fields ``gone``. ``new``: maps its new fields to their names in the file."""
        gone = [self._written[field] for field in gone]
        field = min(gone, key=lambda own: (not role_of(self._spec, {own}), _depth(own)))
        similar = get_close_matches(self.fold(field), new, n=1, cutoff=0.4)
        names = [new[name] for name in sorted(new, key=lambda own: (own not in similar, _depth(own)))]
        advice = self._how_to_read(file, field) or self._how_to_go_on(field, gone, names)
        return SourceError(
            "file-field-missing",
            "log {topic}: {file} has no {field}, {reason}. {fix}",
            topic=self._spec.topic,
            file=file.name,
            field=field,
            reason=self._why_needed(field),
            fix=advice,
        )

    def _why_needed(self, field: str) -> str:
        spec, is_named = self._spec, self.fold(field) in self._folded(named_columns(self._spec))
        # Some landed CSV files may lack a landed field, so the message must not say that all of them have it.
        if self._before is not None:
            return "which is landed" if spec.source.format == "csv" else f"which {_landed(spec, 'all')}"
        if is_named:
            return "which the configuration names"
        return "which `schema:` declares" if spec.source.schema is not None else "which other files have"

    def _how_to_read(self, file: FileFields, field: str) -> str:
        """Return advice if the header of a CSV file cannot be read as the log's columns; otherwise ``""``."""
        if self._spec.source.format != "csv":
            return ""
        separator, is_first = separator_in(file.present), self._before is None
        if separator is not None and is_first:
            return (
                f"Its header is one column: if {separator!r} separates its columns, add `options: {{delimiter: "
                f"{json.dumps(separator)}}}` to the source. Nothing was landed"
            )
        if separator is not None:
            question = (
                f"Its header is one column: does {separator!r} separate its columns, unlike those of landed files?"
            )
            return f"{question} Nothing was landed. {_LIKE_LANDED}, or remove it"
        if not is_first and not self._known & self._folded(file.present):
            question = "Its first line names no landed column: does the file lack its header, or is it no CSV file?"
            return f"{question} Nothing was landed. {_LIKE_LANDED}, or remove it"
        if self.fold(field) in self._folded(file.repeated):
            repeated = f"Its header names {field} twice, so nobody knows which column that is."
            return f"{repeated} Nothing was landed. Fix the file: name each column once"
        return ""

    def _how_to_go_on(self, field: str, gone: Collection[str], new: Sequence[str]) -> str:
        """Return advice about a field that a file lacks.

        ``new``: the names that the field may have in that file, likeliest first.
        """
        spec, is_first = self._spec, self._before is None
        is_usual = not is_first or self.fold(field) in self._present
        hint, fix, ignore = "", "Fix the file", ""
        if new and is_usual:
            unlike_landed = "" if is_first else f", which {_landed(spec, 'no')}"
            hint = f"It has {written(new[0])}{unlike_landed}: was {field} renamed? "
            fix = f"Name it {field} in the file"
            ignore = f" and `ignore: [{', '.join(_outermost(new))}]`"
        elif new and spec.source.schema is not None:
            hint = f"It has {written(new[0])}: is that {field}? Then declare {new[0]}, and rename it under `columns:`. "
        if role := role_of(spec, {field}):
            return (
                f"{hint}{role}, so the file cannot be landed without it. Nothing was landed. Fix the file, or remove it"
            )
        optional = f"`optional: [{', '.join(sorted(_outermost(gone)))}]`{ignore}"
        ways = f"{fix}, or set {optional} to land null where it is missing"
        if not is_first and spec.source.format != "csv" and not self._folded(gone) & self._folded(named_columns(spec)):
            ways += f", or land everything again: {_GENERATION}"
        return f"{hint}Nothing was landed. {ways}"

    def _unknown(self, file: FileFields, field: str) -> SourceError:
        spec = self._spec
        close = get_close_matches(field, sorted(self._known), n=1)
        hint = f" Is it {self._written[close[0]]}?" if close else ""
        ignore = f"`ignore: [{field}]` to leave it out"
        if "." in field or self._before is None or spec.source.format == JOB:
            ways = f"Fix the file, or set {ignore}, or land everything again with it: {_GENERATION}"
        else:
            ways = (
                f"Set {ignore}. Or land it: with `optional: [{field}]`, `rewindow land FEED --new-generation --keep "
                f"{self._landings}` lands it from here on, and without `--keep {self._landings}` in all files that have it"
            )
        return SourceError(
            "file-field-unknown",
            "log {topic}: {file} has the field {field}, which {reason}.{hint} Nothing was landed. {fix}",
            topic=spec.topic,
            file=file.name,
            field=field,
            reason=_landed(spec, "no"),
            hint=hint,
            fix=ways,
        )

    def _renamed(self, file: FileFields, new: str, lacks: str) -> SourceError:
        return SourceError(
            "file-field-renamed",
            "log {topic}: {file} has the field {field}, which {reason}, and no {missing}: was {missing} renamed? "
            "Nothing was landed. Fix the file, or set `ignore: [{field}]` if it is another field",
            topic=self._spec.topic,
            file=file.name,
            field=new,
            reason=_landed(self._spec, "no"),
            missing=lacks,
        )


def _landed(spec: LogSpec, which: str) -> str:
    """Return the end of a sentence about a field, which says that ``which`` landed files have it.

    ``which``: ``all`` or ``no``.
    """
    # A table has one schema for all of its files.
    if spec.source.format in TABLE_FORMATS:
        return "is landed" if which == "all" else "is not landed"
    return "all landed files have" if which == "all" else "no landed file has"


def _is_listed(field: str, listed: set[str], structs: set[str]) -> bool:
    """Return whether the schema lists the fields of the struct that contains a field.

    If it does, an unlisted field is unknown.
    """
    if "." not in field:
        return True
    parent = parent_of(field, frozenset(listed))
    return parent in structs if parent else False


def _is_within(field: str, others: set[str]) -> bool:
    """Return whether a field is one of ``others``, or nested in one of them."""
    return field in others or any(field.startswith(f"{other}.") for other in others)


def _outermost(fields: Collection[str]) -> list[str]:
    """Return the fields that are not nested in another of these fields."""
    return [field for field in fields if not _is_within(field, {*fields} - {field})]


def _depth(field: str) -> tuple[int, str]:
    return field.count("."), field
