"""The definition of a feed, its fingerprint, and the generation that a landing belongs to. Pure.

A new generation that keeps landings can add columns to a log. In the kept landings these columns are null. If a log gets a
source of another kind (files, a table, the output of a job), its landed position is not used, because it has no meaning in that
source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import takewhile
from typing import Any

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import (
    FILE_ORDER,
    JOB,
    FeedSpec,
    LogColumns,
    LogSpec,
    SourceLook,
    SourceOffsets,
    SourceSpec,
)
from rewindow.contracts.instants import MILLISECONDS
from rewindow.contracts.reserved_names import other_name
from rewindow.contracts.text_options import TEXT_FORMATS, text_options
from rewindow.control.ingest.feed_progress import Progress
from rewindow.control.ingest.landings import GENERATION, LANDING, FeedDefinition, Landing, LogSchema, definition_as_json
from rewindow.control.plan.job_state import LedgerRow
from rewindow.errors import ConfigError, LandedFileError, RewindowError, SourceError

FILES = "files"
_MASK = "***"
_SECRET = re.compile(
    r"pass(?:word|wd|phrase)|secret|token|credential|signature|(?:api|access|account|private|sas)[._-]?key",
    re.IGNORECASE,
)
_Look = Callable[[SourceSpec, Mapping[str, Any] | None], SourceLook]
"""Inspects a source of files, relative to the landed position (None: nothing is landed)."""
_WrongColumns = Callable[[LogSpec, SourceLook], RewindowError | None]
"""Returns the error in the columns that a log's settings name, or None. Reads only headers and footers of files."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The generation to which the next landings belong. If ``is_new``, this call starts it.

    ``columns``: by topic, the columns of logs that were landed before. ``growing``: the topics of logs that may get more
    columns than their kept landings have. With ``is_change``, the new generation drops landings, has another definition, or
    accepts changed landed files. Then it is started even if nothing new is due.
    """

    number: int
    kept: int = 0
    is_new: bool = False
    is_change: bool = False
    columns: Mapping[str, LogColumns] = field(default_factory=dict)
    growing: frozenset[str] = frozenset()


def next_generation(
    feed: FeedSpec, progress: Progress, *, new_generation: bool = False, keep: int = 0, mistakes: Iterable[str] = ()
) -> Generation:
    """Decide to which generation the next landings belong.

    ``mistakes`` yields the errors that prevent landing a changed definition. It is consumed only if the definition has changed.
    Raises `SourceError` (66) if the definition differs from that of the current generation, except with ``new_generation``.
    Raises `ConfigError` (78) if the new generation cannot keep ``keep`` landings.
    """
    current = progress.feed.definition if progress.feed else None
    if current is None or new_generation:
        kept = keep if current else 0
        _check_keep(feed, progress, kept, keep)
        columns = _columns(progress) if kept else {}
        before = progress.declared.get("logs", {})
        growing = [
            spec.topic
            for spec in feed.logs
            if spec.topic in columns and _may_grow(spec, columns[spec.topic], before.get(spec.topic, {}))
        ]
        return Generation(
            progress.generation + 1,
            kept,
            is_new=True,
            is_change=kept < progress.number or (current is not None and not _is_landed_so(feed, progress)),
            columns=columns,
            growing=frozenset(growing),
        )
    if not _is_landed_so(feed, progress):
        raise _changed(feed, progress, list(mistakes))
    return Generation(current.generation, current.kept, columns=_columns(progress))


def newest_generation(rows: Sequence[LedgerRow], feed: FeedSpec, keep: int) -> list[Landing]:
    """Return the landings of the last append if it started this generation: same definition, same ``keep``. Otherwise none."""
    last = list(takewhile(lambda row: row.kind in (GENERATION, LANDING), reversed(rows)))
    started = last[-1].body if last and last[-1].kind == GENERATION else None
    if started is None or (started["fingerprint"], started["kept"]) != (_fingerprint(feed), keep):
        return []
    return [Landing.from_json(row.body) for row in reversed(last[:-1])]


def generation_body(
    feed: FeedSpec, generation: Generation, columns: Mapping[str, LogColumns], positions: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the body of a GENERATION row.

    ``positions``: by topic, how far the source is landed; empty without kept landings.
    """
    schemas = {topic: LogSchema(log.key, log.value, log.scalar_key, log.scalar_value) for topic, log in columns.items()}
    definition = FeedDefinition(
        feed.feed,
        generation.number,
        feed.partitions,
        schemas,
        _fingerprint(feed),
        generation.kept,
        _source_offsets(feed, columns),
        tuple(spec.topic for spec in feed.logs if spec.topic_positions),
    )
    return {
        **definition_as_json(definition),
        "declared": _declared(feed),
        "sources": {topic: log.source_schema for topic, log in columns.items()},
        "positions": dict(positions),
    }


def log_schemas(columns: Mapping[str, LogColumns]) -> dict[str, LogSchema]:
    """Return the logs' columns as the ledger stores them."""
    return {topic: LogSchema(log.key, log.value, log.scalar_key, log.scalar_value) for topic, log in columns.items()}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences of two `_declared` definitions as ``path: before -> now``, and logs that are gone, new or renamed."""
    old, new = before.get("logs", {}), now.get("logs", {})
    removed, added = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    for topic in removed:
        same = next((new_topic for new_topic in added if new[new_topic] == old[topic]), None)
        if same is None:
            yield f"the log {topic} is gone"
        else:
            added.remove(same)
            yield f"the log {topic} is named {same} now"
    yield from (f"the log {topic} is new" for topic in added)
    kept = old.keys() & new.keys()
    yield from _differences(
        {**before, "logs": {topic: old[topic] for topic in kept}},
        {**now, "logs": {topic: new[topic] for topic in kept}},
    )


def kind_of(source_format: str) -> str:
    """Return the kind of a source: files, a table, or the output of a job. Positions of one kind have the same form."""
    return source_format if source_format in TABLE_FORMATS else FILES


def position_of(landed: Mapping[str, Any] | None, source_format: str) -> Mapping[str, Any] | None:
    """Return a landed position; None if there is none, or if it belongs to a source of another kind."""
    kind = None if not landed else FILES if FILES in landed else landed["kind"]
    return landed if kind == kind_of(source_format) else None


def is_same_origin(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether a position in one declared source may be valid in another: same kind, and for outputs the same job."""
    jobs = {source["name"].partition(":")[0] for source in (before, now) if source["format"] == JOB}
    return kind_of(before["format"]) == kind_of(now["format"]) and len(jobs) < 2


def grown(spec: LogSpec, kept: LogColumns, now: LogColumns) -> LogColumns:
    """Return the columns of the kept landings plus those columns of the sources that are new.

    A landed column keeps its type if types are inferred. Raises `ConfigError` (78) if a landed column is declared with another
    type, or is left out.
    """
    landed = {column.name: column for column in kept.all}
    present = {column.name: column for column in now.all}
    is_declared = spec.source.schema is not None or spec.source.format in TABLE_FORMATS
    gone = [name for name in landed if name not in present] if spec.value is not None or is_declared else []
    both = [name for name in landed if is_declared and name in present]
    other = [name for name in both if not _are_alike(spec, landed[name].type, present[name].type)]
    if gone or other:
        reason = "it is left out" if gone else f"it is {present[other[0]].type} now"
        column = landed[(gone or other)[0]]
        step = f"{other_name(column.name)}, and land" if other and not gone else "land"
        raise ConfigError(
            "landed-column-incompatible",
            "log {topic}: {column} was landed as {type}, but {reason}, so kept landings and new ones would "
            "not fit together: {fix} everything again: `rewindow land FEED --new-generation`",
            topic=spec.topic,
            column=column.name,
            type=column.type,
            reason=reason,
            fix=step,
        )
    values = [landed.get(column.name, column) for column in now.value]
    if spec.value is None:
        values = [*kept.value, *(column for column in now.value if column.name not in landed)]
    schema = now.source_schema if is_declared else _with_new_fields(kept.source_schema, now.source_schema)
    return LogColumns(kept.key, tuple(values), kept.scalar_key, kept.scalar_value, schema)


def null_in_kept(kept: Mapping[str, LogColumns], now: Mapping[str, LogColumns]) -> str:
    """Return the part of a sentence that says which columns the kept landings lack; ``""`` if they lack none."""
    new = [
        column.name
        for topic, before in kept.items()
        for column in now[topic].value
        if column.name not in {old.name for old in before.all}
    ]
    if not new:
        return ""
    return f", where the new column{'s' if new[1:] else ''} {' and '.join(new)} {'are' if new[1:] else 'is'} null"


def mistakes(feed: FeedSpec, progress: Progress, look: _Look, wrong_columns: _WrongColumns) -> Iterator[str]:
    """Yield the error in the definition of each log that reads files, if it has an error. Reads no rows."""
    for spec in feed.logs:
        if spec.source.format in TABLE_FORMATS:
            continue
        landed = progress.declared.get("logs", {}).get(spec.topic, {}).get("source", {}).get("name")
        position = progress.positions.get(spec.topic) if landed == spec.source.name else None
        # If the source was a table before, its position has no meaning for files.
        position = position_of(position, spec.source.format)
        try:
            wrong = wrong_columns(spec, look(spec.source, position))
        except LandedFileError:
            # Landed files have changed. The definition is not wrong, and a new generation can land the changed files.
            continue
        except RewindowError as error:
            wrong = error
        if wrong is not None:
            yield str(wrong)


def _declared(feed: FeedSpec) -> dict[str, Any]:
    """Return the settings that decide which rows a log gets, as JSON values.

    They are the same for all landings of a generation.
    """
    return {
        "partitions": feed.partitions,
        "every": f"{feed.every[0]}{feed.every[1]}" if feed.every else None,
        "zone": feed.zone,
        "logs": {spec.topic: _declared_log(spec) for spec in feed.logs},
    }


def _fingerprint(feed: FeedSpec) -> str:
    """Return the digest of a feed's `_declared` settings."""
    text = json.dumps(_declared(feed), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _is_landed_so(feed: FeedSpec, progress: Progress) -> bool:
    """Return whether a feed was landed under its present definition.

    Options of text files with the same meaning count as equal.
    """
    if progress.feed is None or progress.feed.definition.fingerprint == _fingerprint(feed):
        return True
    return _with_meanings(progress.declared) == _with_meanings(_declared(feed))


def _with_meanings(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `_declared` definition in which the options of text files are replaced by their meaning (`text_options`)."""
    logs = dict(definition.get("logs", {}))
    for topic, log in logs.items():
        source = log["source"]
        if source.get("format") in TEXT_FORMATS:
            try:
                meaning: Any = text_options(source["format"], source["options"])
            except ValueError:
                # An earlier version accepted this option of Spark's readers. Its meaning is unknown here, so it is compared as
                # text.
                continue
            logs[topic] = {**log, "source": {**source, "options": meaning}}
    return {**definition, "logs": logs}


def _changed(feed: FeedSpec, progress: Progress, mistakes: Sequence[str]) -> SourceError:
    before, now = progress.declared, _declared(feed)
    changes = "; ".join(differences(before, now)) or "an older version of the definition"
    if mistakes:
        return SourceError(
            "feed-definition-unusable",
            "feed {feed} was landed under a different definition ({changes}), and the present one cannot be landed: {mistakes}",
            feed=feed.feed,
            changes=changes,
            mistakes="; ".join(mistakes),
        )
    keep = ""
    condition = "" if feed.every else _kept_if(before, now)
    if progress.number and condition is not None and not _unkept(before, now):
        old, new = (
            {log["source"].get("schema") for log in definition["logs"].values()} for definition in (before, now)
        )
        unless = "" if old == new else ", unless a landed column has another type now"
        keep = f". With `--keep {progress.number}`, what is landed stays as it is{condition}{unless}"
    return SourceError(
        "feed-definition-changed",
        "feed {feed} was landed under a different definition ({changes}). Restore the configuration, or land everything again: "
        "`rewindow land {feed} --new-generation`{keep}",
        feed=feed.feed,
        changes=changes,
        keep=keep,
    )


def _differences(before: Any, now: Any, path: str = "") -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in sorted({*before, *now}):
            yield from _differences(before.get(name), now.get(name), f"{path}.{name}" if path else name)
    elif before != now:
        yield f"{path}: {_shown(before)} -> {_shown(now)}"


def _columns(progress: Progress) -> dict[str, LogColumns]:
    logs = progress.feed.definition.logs if progress.feed else {}
    return {
        topic: LogColumns(log.key, log.value, log.scalar_key, log.scalar_value, progress.sources.get(topic))
        for topic, log in logs.items()
    }


def _check_keep(feed: FeedSpec, progress: Progress, kept: int, keep: int) -> None:
    landed = progress.number
    if keep and (progress.feed is None or not 0 <= keep <= landed):
        can = f"it can keep 1 to {landed}" if landed else "leave out `--keep`"
        raise ConfigError(
            "kept-landings-out-of-range",
            "--keep {keep}: feed {feed} has {landings} landings, so {fix}",
            keep=keep,
            feed=feed.feed,
            landings=landed,
            fix=can,
        )
    if not kept:
        return
    changed = _unkept(progress.declared, _declared(feed))
    if changed:
        raise ConfigError(
            "kept-landings-incompatible",
            "--keep {keep}: {changes} changed, so kept landings and new ones would not fit together. Land "
            "everything again: `rewindow land {feed} --new-generation`",
            keep=keep,
            changes=", ".join(changed),
            feed=feed.feed,
        )


def _unkept(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names of changed settings that must not differ between kept and new landings."""
    changed = [name for name in ("partitions", "every", "zone") if before.get(name) != now[name]]
    for topic, log in now["logs"].items():
        old = before.get("logs", {}).get(topic)
        parts = [part for part in ("key", "source_offsets") if old and old.get(part) != log.get(part)]
        if old and not _grows_only(old, log):
            parts += [part for part in ("value", "columns") if old.get(part) != log.get(part)]
        changed += [f"{topic}.{part}" for part in parts]
    return changed


def _source_offsets(feed: FeedSpec, columns: Mapping[str, LogColumns]) -> dict[str, SourceOffsets]:
    return {
        spec.topic: SourceOffsets(
            table=spec.source.name,
            partition=spec.source_offsets[0],
            offset=spec.source_offsets[1],
            timestamp=spec.timestamp,
            renames=dict(spec.renames or {}),
            zone=spec.zone,
            schema=columns[spec.topic].source_schema or "{}",
        )
        for spec in feed.logs
        if spec.source_offsets
    }


def _declared_log(spec: LogSpec) -> dict[str, Any]:
    source = spec.source
    return {
        "source": {
            "format": source.format,
            "name": source.name,
            "options": {name: _MASK if _SECRET.search(name) else value for name, value in source.options.items()},
            "schema": source.schema,
        },
        "key": spec.key[0] if spec.scalar_key else list(spec.key),
        "value": None if spec.value is None else spec.value[0] if spec.scalar_value else list(spec.value),
        "timestamp": spec.timestamp,
        "arrived_at": spec.arrived_at,
        "order": FILE_ORDER if spec.in_file_order else list(spec.order),
        "columns": {new: old for old, new in (spec.renames or {}).items()},
        **(
            {"units": units}
            if (units := {name: unit for name, unit in spec.units.items() if unit != MILLISECONDS})
            else {}
        ),
        **({"source_offsets": list(spec.position_columns)} if spec.position_columns else {}),
    }


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


def _kept_if(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return on which condition logs without `every` can keep landings, as a part of a sentence; None if they cannot."""
    conditions = []
    for topic, log in now["logs"].items():
        old = before.get("logs", {}).get(topic)
        if old is None:
            continue
        was, source = old["source"], log["source"]
        if not is_same_origin(was, source):
            return None
        if was["name"] != source["name"] and source["format"] != JOB:
            conditions.append(f"{source['name']} has all that was landed from {was['name']}")
    return f", if {' and '.join(conditions)}" if conditions else ""


def _may_grow(spec: LogSpec, kept: LogColumns, declared: Mapping[str, Any]) -> bool:
    """Return whether a log may get more columns than its kept landings have.

    ``declared``: its settings in the kept landings.
    """
    if spec.source_offsets is not None or spec.scalar_value:
        return False
    is_new = spec.value is None or not {*spec.value} <= {column.name for column in kept.value}
    return is_new or declared.get("source", {}).get("schema") != spec.source.schema


def _grows_only(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether two declarations of a log differ only in additional value columns and their renames."""
    old, new = before.get("value"), now.get("value")
    if isinstance(old, str) or isinstance(new, str):
        return old == new and before.get("columns") == now.get("columns")
    renames: Mapping[str, str] = before.get("columns") or {}
    return {*(old or ())} <= {*(new if new is not None else old or ())} and {**now["columns"], **renames} == now[
        "columns"
    ]


def _are_alike(spec: LogSpec, landed: str, now: str) -> bool:
    """Return whether values of the type ``now`` can be landed in a column of the type ``landed``."""
    # Before ADR-139, JSON columns of a job's output were landed as text.
    return now == landed or (spec.is_output and (landed, now) == ("string", "json"))


def _with_new_fields(kept: str | None, now: str | None) -> str:
    """Return the schema ``kept`` (Spark's JSON) with the additional fields of the schema ``now``."""
    schema, other = (json.loads(text or '{"fields":[],"type":"struct"}') for text in (kept, now))
    names = {field["name"].lower() for field in schema["fields"]}
    schema["fields"] += [field for field in other["fields"] if field["name"].lower() not in names]
    return json.dumps(schema, separators=(",", ":"), sort_keys=True)
