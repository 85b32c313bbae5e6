"""File sources: list the files, and check that landed files have not changed.

A file is identified by its path below the source's folder, its size and a digest (for large files, a digest of both ends). So
a copy of the source in another folder counts as the same source, and modification times do not matter. The digest of a landed
file is computed again in two cases: its modification time differs, or it still has rows of later intervals, which are not
landed yet.

This module also finds new CSV files that may be half written: their last line has no line break, although landed files end
with one. A row that is cut within its last value would be landed with a wrong value. JSON lines and compressed files need no
such check, because a cut one cannot be read at all.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from glob import glob, has_magic
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from rewindow.contracts.ingest import LATER, Piece, SourceLook, SourceSpec
from rewindow.contracts.text_options import CSV, TEXT_FORMATS, text_options
from rewindow.engine.worker.file_fields import has_rows
from rewindow.engine.worker.text.file_text import decompressed
from rewindow.errors import AccessError, ConfigError, LandedFileError, SourceError, check_utf8
from rewindow.storage.locations import LOG

COMPRESSED = (".gz", ".bz2", ".zst")
"""The suffixes of compressed text files that are read."""
_GONE = "is gone"
_FILES = "files"
"""The kind of a file source's position. The position maps a path to [size, modification time (ns), digest].

For a compressed text file, the list also has the size and the digest of the decompressed text. If an older version landed the
file, the list lacks these two items. A copy of the file is then recognized only by its bytes.
"""
_LANDED = 64
"""New files are compared with the values of at most this many landed files."""
_COMPARED = 3
"""This many landed files, the last ones by name, are read to find out whether files of a source end with a line break."""
_LINE_END_BYTES = 4
"""The most bytes that the end of a line takes in any encoding."""
_WHOLE_BYTES = 64 << 20
_END_BYTES = 1 << 20


def look_at_files(spec: SourceSpec, position: Mapping[str, Any] | None, *, to_land: bool = True) -> SourceLook:
    """Compare a file source with its landed position (None: nothing is landed).

    Fresh text files without rows are left out, because they may not be written yet. With ``to_land``, fresh compressed text
    files are read to their end, to recognize copies and to refuse truncated files. The position in the result has only fresh
    files.

    Raises `SourceError` (66) if no file has rows, or if a landed file is missing or has changed. Raises `ConfigError` (78)
    for the files of a Delta table, because some of them may have rows that were replaced or deleted.
    """
    landed: Mapping[str, Sequence[Any]] = position[_FILES] if position else {}
    later = (position or {}).get(LATER, {})
    base, files = _find(spec)
    marks: dict[str, list[Any]] = {}
    missing = [name for name in landed if name not in files]
    is_text = spec.format in TEXT_FORMATS
    fresh_texts = {name: file for name, file in files.items() if is_text and name not in landed}
    empty = {name for name, file in fresh_texts.items() if not file.facts[0] or not has_rows(spec, file.path)}
    if len(empty) == len(files):
        first = min(empty)
        is_header = spec.format == CSV and text_options(CSV, spec.options).header
        why = ", because its first line is the header" if is_header else ""
        reason = f"has no rows{why}" if files[first].facts[0] else "is empty"
        raise SourceError(
            "source-without-rows",
            "{source}: {file} {reason}, and no other file has rows: restore it, or wait for its rows",
            source=spec.name,
            file=first,
            reason=reason,
        )
    for name, file in files.items():
        try:
            if name in landed:
                _check_same(spec, name, file, landed[name], is_done=name not in later)
            elif name not in empty:
                marks[name] = [*file.facts, _digest(file.path), *(_text_mark(spec, name, file.path) if to_land else ())]
        except PermissionError as error:
            raise _refused(file.path, error) from error
    if missing:
        raise _broken(spec, missing[0], _gone(landed[missing[0]], marks))
    if not spec.lands_copies:
        _refuse_copies(spec, files, landed, marks)
    fresh = tuple(Piece(files[name].path, name=name) for name in marks)
    rest = tuple(Piece(file.path, name=name) for name, file in files.items() if name in landed)
    partitioned = any("=" in part for name in files if "/" in name for part in name.split("/")[:-1])
    return SourceLook(
        {"kind": _FILES, _FILES: marks},
        fresh,
        rest,
        base=base if partitioned else None,
        landed=rest[-_LANDED:],
        empty=tuple(sorted(empty)),
        open_ended=_open_ended(spec, fresh, rest) if to_land else (),
    )


def unchanged(look: SourceLook, spec: SourceSpec) -> None:
    """Raise `SourceError` (66) if a fresh file has changed since ``look`` was made."""
    marks = look.position[_FILES]
    # Landed files are included, because a new generation that keeps landings reads them again.
    for piece in (*look.fresh, *look.rest):
        if piece.name in marks and list(_facts(piece.path) or ()) != marks[piece.name][:2]:
            name = piece.name
            raise SourceError(
                "file-changed-while-landing",
                "{source}: {file} was changed while it was being landed. Nothing was landed. Land again",
                source=spec.name,
                file=name,
            )


class _File(NamedTuple):
    """A file of a source: its path, its size in bytes and its modification time (ns)."""

    path: str
    facts: tuple[int, int]


def _find(spec: SourceSpec) -> tuple[str, dict[str, _File]]:
    """Return the source's folder, and its files by path below the folder, in the order of the paths.

    Each landing calls this for all files that were ever landed, so each file must cost only one call of `stat`.
    """
    # `Path` drops doubled and trailing slashes. So each path begins with the location.
    location = str(Path(spec.location))
    root, configured = _parts(spec)
    if has_magic(configured):
        base = str(Path(root, _folder_of_pattern(configured)))
        matches = glob(configured, root_dir=root or None, recursive=True)  # noqa: PTH207 - may be absolute
        paths = [path for match in matches for path in _below(spec, str(Path(root, match)), base)]
        _refuse_tables(spec, base, paths)
    else:
        base = location if Path(location).is_dir() else str(Path(location).parent)
        paths = list(_below(spec, location, base))
    begin = len(base.rstrip("/")) + 1
    names = {path[begin:]: path for path in paths}
    own = {name: names[name] for name in sorted(names) if not _is_ignored(name)}
    inside = os.path.realpath(base)
    for folder in sorted({os.path.dirname(path) for path in own.values()}):  # noqa: PTH120 - called for each landed file
        _check_link(spec, folder, os.path.realpath(folder), inside)
    files = {name: _file(spec, name, path, "" if path == location else inside) for name, path in own.items()}
    if not files:
        raise SourceError(
            "source-without-files",
            "the source {source} has no files at {location}: fix `path:`, or wait for the first file",
            source=spec.name,
            location=location,
        )
    return base, files


def _parts(spec: SourceSpec) -> tuple[str, str]:
    """Return the project's root, which is never a pattern, and a source's configured path, which may be a pattern."""
    root = spec.location.removesuffix(f"/{spec.name}")
    return ("", str(Path(spec.location))) if root == spec.location else (root or "/", str(Path(spec.name)))


def _file(spec: SourceSpec, name: str, path: str, inside: str) -> _File:
    """Return a file of a source. ``inside``: the folder that must contain its real path; empty if ``path:`` names the file."""
    check_utf8(name, f"file name in {spec.name}", SourceError)
    facts = _facts(path, lambda: _check_link(spec, path, os.path.realpath(path), inside) if inside else None)
    # Only regular files are accepted. For example, reading a pipe would never end.
    if facts is None:
        raise SourceError(
            "file-not-regular",
            "{source}: {file} is not a regular file (a pipe, or a link to nothing): remove it",
            source=spec.name,
            file=name,
        )
    return _File(path, facts)


def _facts(path: str, check_link: Callable[[], object] = lambda: None) -> tuple[int, int] | None:
    """Return the size in bytes and the modification time (ns) of a regular file; None if the path is no regular file.

    ``check_link`` is called if the path is a link.
    """
    try:
        facts = os.lstat(path)
        if stat.S_ISLNK(facts.st_mode):
            check_link()
            facts = os.stat(path)  # noqa: PTH116 - called for each landed file
    except PermissionError as error:
        raise _refused(path, error) from error
    except OSError:
        return None
    return (facts.st_size, facts.st_mtime_ns) if stat.S_ISREG(facts.st_mode) else None


def _refused(path: str, error: PermissionError) -> AccessError:
    return AccessError(
        "file-read-denied",
        "cannot read {file}: {reason}. Grant this user read access",
        file=path,
        reason=error.strerror,
    )


def _gone(mark: Sequence[Any], fresh: Mapping[str, Sequence[Any]]) -> str:
    """Return the text for a landed file that is gone. If a fresh file has the same content, the text names the fresh file."""
    new = next((name for name, other in fresh.items() if [other[0], other[2]] == [mark[0], mark[2]]), None)
    return _GONE if new is None else f"{_GONE}; {new} has its content, so it was renamed: rename it back"


def _refuse_copies(
    spec: SourceSpec,
    files: Mapping[str, _File],
    landed: Mapping[str, Sequence[Any]],
    fresh: Mapping[str, Sequence[Any]],
) -> None:
    """Raise `SourceError` (66) for a fresh file with the same content as another, whose rows would be landed twice."""
    if not fresh:
        return
    sizes = {size for mark in fresh.values() for size, _ in _contents(mark)}
    alike = [(name, mark) for name, mark in landed.items() if mark[0] in sizes or (len(mark) > 3 and mark[3] in sizes)]
    first_with = {content: name for name, mark in reversed([*alike, *fresh.items()]) for content in _contents(mark)}
    for name, mark in fresh.items():
        other = next((first_with[content] for content in _contents(mark) if first_with[content] != name), name)
        if other != name and has_rows(spec, files[name].path):
            is_landed = f", because {other} is landed and has to stay" if other in landed else " or the other"
            raise SourceError(
                "file-content-repeated",
                "{source}: {file} has the same content as {other}, so its rows would be landed twice. "
                "Nothing was landed. Remove {file}{hint}, or set `copies: land` for this source",
                source=spec.name,
                file=name,
                other=other,
                hint=is_landed,
            )


def _contents(mark: Sequence[Any]) -> list[tuple[int, str]]:
    """Return a pair (size, digest) of a file's bytes and, for a compressed text file, another pair of its text."""
    return [(mark[0], mark[2]), *([(mark[3], mark[4])] if len(mark) > 3 else [])]


def _text_mark(spec: SourceSpec, name: str, path: str) -> tuple[int, str] | tuple[()]:
    if spec.format not in TEXT_FORMATS:
        return ()
    if not name.lower().endswith(COMPRESSED):
        return ()
    return _text_digest(path)


def _below(spec: SourceSpec, path: str, base: str) -> Iterator[str]:
    if Path(path).is_file():
        yield path
        return
    begin, entered = len(base.rstrip("/")) + 1, [os.path.realpath(base)]
    for folder, folders, files in os.walk(path, followlinks=True):
        if LOG in folders:
            raise _is_table(spec, folder)
        for link in [name for name in folders if os.path.islink(f"{folder}/{name}")]:  # noqa: PTH114 - for each folder
            target = os.path.realpath(f"{folder}/{link}")
            if not _is_ignored(f"{folder}/{link}"[begin:]):
                _check_link(spec, f"{folder}/{link}", target, entered[0])
            # A folder is not entered if it was entered already, or is within or around such a folder. So circles of links end.
            if any(_is_below(target, other) or _is_below(other, target) for other in entered):
                folders.remove(link)
            entered.append(target)
        yield from (f"{folder}/{name}" for name in files)


def _check_link(spec: SourceSpec, path: str, target: str, inside: str) -> None:
    """Raise `SourceError` (66) if a link leads out of the source's folder, unless the source follows such links.

    Without this check, anybody who can write into the folder could let `land` read any file that the command can read.
    ``inside`` is the folder's real path.
    """
    if not (spec.follows_links or _is_below(target, inside)):
        raise SourceError(
            "source-link-leads-out",
            "{source}: {link} leads to {target}, out of {folder}: put the files themselves there, or set `links: follow` for the "
            "source",
            source=spec.name,
            link=path,
            target=target,
            folder=inside,
        )


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _refuse_tables(spec: SourceSpec, base: str, paths: Iterable[str]) -> None:
    """Raise `ConfigError` (78) if files that match a pattern belong to a Delta table."""
    folders = {folder for path in paths for folder in Path(path).parents if folder.is_relative_to(base)}
    for folder in sorted(folders):
        if (folder / LOG).is_dir():
            raise _is_table(spec, str(folder))


def _is_table(spec: SourceSpec, folder: str) -> ConfigError:
    return ConfigError(
        "source-is-table",
        "{source}: {folder} is a Delta table, and some of its files may hold rows that were replaced or "
        "deleted. Read it with `format: delta` instead of `format: {format}` in the feed's file in "
        "conf/feeds, or with `table:` if it is in the warehouse",
        source=spec.name,
        folder=folder,
        format=spec.format,
    )


def _is_ignored(name: str) -> bool:
    """Return whether Spark ignores a file, because its name or the name of a folder on its path marks it as hidden."""
    if name[0] not in "._" and "/." not in name and "/_" not in name:
        return False
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in name.split("/"))


def _folder_of_pattern(pattern: str) -> str:
    parts: list[str] = []
    for part in Path(pattern).parts:
        if has_magic(part):
            break
        parts.append(part)
    return str(Path(*parts))


def _check_same(spec: SourceSpec, name: str, file: _File, mark: Sequence[Any], *, is_done: bool) -> None:
    size, modified_ns = file.facts
    if is_done and size == mark[0] and modified_ns == mark[1]:
        return
    if size != mark[0] or _digest(file.path) != mark[2]:
        raise _broken(spec, name, "has changed")


def _broken(spec: SourceSpec, name: str, change: str) -> LandedFileError:
    fix, when = "Restore it, and put new data into new files", "history did change"
    if change.startswith(_GONE):
        # A user who only wants to free space would lose these rows, which the log still has.
        fix, when = "Restore it", "its rows are to disappear from the log, too"
    return LandedFileError(
        "landed-file-changed",
        "{source}: the landed file {file} {what}. {fix}. If {when}, land a new generation: `rewindow land FEED "
        "--new-generation`.",
        source=spec.name,
        file=name,
        what=change,
        fix=fix,
        when=when,
    )


def _open_ended(spec: SourceSpec, fresh: Sequence[Piece], landed: Sequence[Piece]) -> tuple[str, ...]:
    """Return the new CSV files whose last line lacks a line break; none if the last landed files end without one, too.

    Reads the last bytes of each new file, and of a few landed ones if necessary. Raises `OSError`.
    """
    if spec.format != CSV:
        return ()
    open_ended = tuple(piece.name for piece in fresh if _is_open(piece))
    if not open_ended or (landed and all(_is_open(piece) for piece in landed[-_COMPARED:])):
        return ()
    return open_ended


def _is_open(piece: Piece) -> bool:
    if piece.name.lower().endswith(COMPRESSED):
        return False
    with Path(piece.path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _LINE_END_BYTES))
        # In UTF-16 and UTF-32, zero bytes may follow the byte of the line feed.
        end = file.read().rstrip(b"\0")
    return not end.endswith((b"\n", b"\r"))


def _digest(path: str) -> str:
    """Return the digest of a file's bytes; for a large file, the digest of the bytes at both ends."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= _WHOLE_BYTES:
            return _of_blocks(iter(partial(file.read, _END_BYTES), b""))[1]
        beginning = file.read(_END_BYTES)
        file.seek(-_END_BYTES, os.SEEK_END)
        return _of_ends(beginning, file.read(_END_BYTES))


def _text_digest(path: str) -> tuple[int, str]:
    """Return the size of the text in a compressed file, and the digest that an uncompressed file with this text would have.

    Reads the whole file. Raises `StorageError` (74) if the file is truncated or not compressed.
    """
    return _of_blocks(decompressed(path))


def _of_blocks(blocks: Iterable[bytes]) -> tuple[int, str]:
    whole, size, beginning, end = blake2b(digest_size=16), 0, b"", b""
    for block in blocks:
        size += len(block)
        if size <= _WHOLE_BYTES:
            whole.update(block)
        beginning = (beginning + block)[:_END_BYTES] if len(beginning) < _END_BYTES else beginning
        end = block if len(block) == _END_BYTES else (end + block)[-_END_BYTES:]
    return size, whole.hexdigest() if size <= _WHOLE_BYTES else _of_ends(beginning, end)


def _of_ends(beginning: bytes, end: bytes) -> str:
    return blake2b(beginning + end, digest_size=16).hexdigest()
