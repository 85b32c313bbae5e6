"""The bytes of a text file as blocks of whole lines in UTF-8: decompressed, decoded, without a byte order mark."""

from __future__ import annotations

import bz2
import codecs
import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import PurePosixPath
from typing import IO, NamedTuple, cast

import pyarrow as pa

from rewindow.contracts.text_options import TextOptions
from rewindow.errors import SourceError, StorageError
from rewindow.storage.locations import filesystem_of

BLOCK_BYTES = 8 << 20
LARGEST = 64 << 20
"""A record has at most this many bytes. If there is a longer one, the file is probably no text, or a quote is never closed."""
_READ_BYTES = 1 << 20
_UTF_8_MARK = codecs.BOM_UTF8
# The byte order mark of UTF-32 begins with that of UTF-16, so longer marks come first.
_MARKS: Mapping[bytes, str] = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_CONTENTS: Mapping[bytes, str] = {
    b"\x1f\x8b": "gzip",
    b"BZh91AY&SY": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\0": "xz",
    b"PK\x03\x04": "zip",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xff\x06\0\0sNaPpY": "snappy",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"PAR1": "Parquet",
    b"Obj\x01": "Avro",
    b"\x1f\x9d": "compress",
}
"""Maps the first bytes of files that are not text to the kind of the file."""
_READ_BY: Mapping[str, str] = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
_NOT_READ = {
    suffix: suffix[1:]
    for suffix in (
        ".xz",
        ".zip",
        ".lz4",
        ".snappy",
        ".deflate",
        ".br",
        ".7z",
        ".lzo",
        ".z",
        ".lzma",
        ".sz",
        ".tar",
        ".tgz",
    )
}
_TAR, _TAR_AT = b"ustar", 257
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
"""Matches control characters that do not occur in the first line of a text in UTF-8."""
_HEAD_BYTES = 512
_COMPRESS = "Decompress it, or compress it with gzip, bzip2 or zstd, then land again"
_NOT_UTF_8 = "its bytes are not UTF-8 (another encoding is named like `options: {encoding: cp1252}`)"


class Part(NamedTuple):
    """A part of a file: the lines that begin at a byte in ``[start, end)``. If ``end`` is None, all lines from ``start`` on."""

    path: str
    start: int = 0
    end: int | None = None


class Block(NamedTuple):
    """Whole lines, and the number (from 0) that the first of them has in its part."""

    data: bytes
    line: int


class BadTextError(Exception):
    """A line that cannot be read: its number in the part (from 0), and what is wrong with it."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


def read_blocks(part: Part, options: TextOptions, *, size: int) -> Iterator[Block]:
    """Yield the lines of a part in blocks of about ``size`` bytes. The last line may lack its line break.

    Raises `BadTextError` for bytes that are not characters, `SourceError` (66) for a file that is not text, and `StorageError`
    (74) for a file that cannot be read or decompressed.
    """
    line, length = 0, 0
    chunks: list[bytes] = []
    for chunk in _texts(part, options):
        chunks.append(chunk)
        length += len(chunk)
        if length > size + LARGEST:
            line += sum(chunk_before.count(b"\n") for chunk_before in chunks)
            raise BadTextError(line, f"it is longer than {LARGEST >> 20} MB")
        if length < size or b"\n" not in chunk:
            continue
        data, rest = _cut(chunks)
        yield Block(_checked(data, line), line)
        line += data.count(b"\n")
        chunks, length = [rest], len(rest)
    if length:
        yield Block(_checked(b"".join(chunks), line), line)


def read_texts(part: Part, options: TextOptions) -> Iterator[bytes]:
    """Yield the text of a part in chunks that may end anywhere, for formats whose records are not lines.

    Raises the errors of `read_blocks`.
    """
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 0
    for chunk in _texts(part, options):
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            raise BadTextError(line + chunk.count(b"\n", 0, error.start), _NOT_UTF_8) from error
        if (nul := chunk.find(b"\0")) >= 0:
            raise BadTextError(line + chunk.count(b"\n", 0, nul), "it has the character NUL")
        line += chunk.count(b"\n")
        yield chunk
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise BadTextError(line, _NOT_UTF_8) from error


def decompressed(path: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file.

    Raises the errors of `read_blocks`, but does not check that the bytes are text.
    """
    return _bytes(Part(path))


def first_lines(path: str, options: TextOptions) -> bytes:
    """Return the beginning of a file's text: at least one line, unless the file is empty.

    Raises the errors of `read_blocks`.
    """
    block = next(read_blocks(Part(path), options, size=1), None)
    return b"" if block is None else block.data


def _cut(chunks: list[bytes]) -> tuple[bytes, bytes]:
    """Return the whole lines in chunks, and the text after the last line break. The last chunk contains a line break."""
    end = chunks[-1].rfind(b"\n") + 1
    return b"".join((*chunks[:-1], chunks[-1][:end])), chunks[-1][end:]


def _checked(data: bytes, line: int) -> bytes:
    try:
        # `decode` is a fast check, because it looks at 8 bytes of ASCII at a time.
        data.decode()
    except UnicodeDecodeError as error:
        raise BadTextError(line + data.count(b"\n", 0, error.start), _NOT_UTF_8) from error
    if (nul := data.find(b"\0")) >= 0:
        raise BadTextError(line + data.count(b"\n", 0, nul), "it has the character NUL")
    return data


def _texts(part: Part, options: TextOptions) -> Iterator[bytes]:
    """Yield the text of a part in UTF-8, in chunks that may end anywhere."""
    chunks = _bytes(part)
    head = next(chunks, b"")
    if part.start == 0:
        head = _without_mark(part.path, head, options)
    if options.is_utf_8:
        yield head
        yield from chunks
        return
    decoder, line = codecs.getincrementaldecoder(options.encoding)(), 0
    is_first = part.start == 0
    for chunk in chain([head], chunks):
        text = _decoded(decoder, chunk, line, options, final=False)
        if is_first and text:
            text, is_first = text.removeprefix(_UTF_8_MARK), False
        line += text.count(b"\n")
        yield text
    yield _decoded(decoder, b"", line, options, final=True)


def _decoded(
    decoder: codecs.IncrementalDecoder, chunk: bytes, line: int, options: TextOptions, *, final: bool
) -> bytes:
    try:
        return decoder.decode(chunk, final).encode()
    except UnicodeError as error:
        before = 0
        # Line breaks are counted in decoded text. In UTF-16, the byte of a line feed may be part of another character.
        if isinstance(error, UnicodeDecodeError):
            before = error.object[: error.start].decode(error.encoding, "ignore").count("\n")
        raise BadTextError(line + before, f"its bytes are not {options.encoding.upper()}") from error


def _without_mark(path: str, head: bytes, options: TextOptions) -> bytes:
    if options.is_utf_8:
        if head.startswith(_UTF_8_MARK):
            return head[len(_UTF_8_MARK) :]
        for mark, name in _MARKS.items():
            if head.startswith(mark):
                raise SourceError(
                    "text-not-utf8",
                    "{file} is {encoding}, as its first bytes say. Convert it to UTF-8, or, if all files are "
                    "{encoding}, add `options: {{encoding: {encoding}}}` to the source",
                    file=path,
                    encoding=name,
                )
    kind = _kind_of(head)
    if kind is None and options.is_utf_8 and options.header and (found := _BINARY.search(head.partition(b"\n")[0])):
        kind = None if found[0].decode() in {"\0", options.delimiter, options.quote, options.escape} else "binary data"
    if kind is not None:
        raise SourceError(
            "file-not-text", "{file} is not text, but {kind}. {fix}", file=path, kind=kind, fix=_advice(path, kind)
        )
    return head


def _kind_of(head: bytes) -> str | None:
    """Return the kind of a file that is not text, given its first bytes; None if they may be text."""
    if head[_TAR_AT:].startswith(_TAR):
        return "tar"
    return next((kind for begin, kind in _CONTENTS.items() if head.startswith(begin)), None)


def _advice(path: str, kind: str) -> str:
    suffix = next((suffix for suffix, name in _READ_BY.items() if name == kind), None)
    if suffix is not None:
        return f"Its name does not say so: rename it to {PurePosixPath(path).name}{suffix}"
    if kind in {"Avro", "binary data"}:
        return "Write it as CSV, JSON or Parquet"
    return "Land it with `format: parquet`" if kind == "Parquet" else _COMPRESS


def _bytes(part: Part) -> Iterator[bytes]:
    """Yield the bytes of a part's lines, decompressed."""
    suffix = PurePosixPath(part.path).suffix.lower()
    if suffix in _NOT_READ:
        raise SourceError(
            "compression-not-supported",
            "{file} is compressed by {compression}. {fix}",
            file=part.path,
            compression=_NOT_READ[suffix],
            fix=_COMPRESS,
        )
    with _open_file(part.path) as stream:
        if suffix in _READ_BY:
            yield from _decompressed(part.path, stream, _READ_BY[suffix])
        elif part.end is None and part.start == 0:
            yield from iter(lambda: stream.read(_READ_BYTES), b"")
        else:
            yield from _lines_within(stream, part)


def _lines_within(stream: IO[bytes], part: Part) -> Iterator[bytes]:
    """Yield the bytes of the lines that begin in a part. A line belongs to the part that contains its first byte."""
    position = part.start
    if part.start:
        # The search starts one byte earlier. If that byte is a line feed, a line begins exactly at `part.start`.
        stream.seek(part.start - 1)
        while True:
            data = stream.read(_READ_BYTES)
            if not data:
                return
            end = data.find(b"\n") + 1
            if end:
                break
            position += len(data)
        position += end - 1
        if part.end is not None and position >= part.end:
            return
        stream.seek(position)
    while data := stream.read(_READ_BYTES):
        if part.end is not None and position + len(data) >= part.end:
            # The line that contains the part's last byte is the part's last line.
            last = data.find(b"\n", max(0, part.end - 1 - position)) + 1
            if last:
                yield data[:last]
                return
        position += len(data)
        yield data


def _decompressed(path: str, stream: IO[bytes], kind: str) -> Iterator[bytes]:
    head = stream.read(_HEAD_BYTES)
    stream.seek(0)
    found = _kind_of(head)
    # Two kinds of files have no known mark: a zstd file may begin with a skippable frame, and a truncated file may be shorter
    # than the mark.
    if head and found != kind and (found is not None or not _BINARY.search(head)):
        raise SourceError(
            "file-not-compressed-so",
            "{file} is not compressed by {compression}, as its name says, but is {kind}. Rename or decompress it",
            file=path,
            compression=kind,
            kind=found or "text",
        )
    try:
        with _decompressor(stream, kind) as text:
            yield from iter(lambda: text.read(_READ_BYTES), b"")
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        raise StorageError(
            "file-not-decompressed",
            "{file} cannot be decompressed by {compression} ({reason}). Restore the file or wait for it, then land again",
            file=path,
            compression=kind,
            reason=str(error),
        ) from error


def _decompressor(stream: IO[bytes], kind: str) -> IO[bytes]:
    open_: Mapping[str, Callable[[], object]] = {
        # `GzipFile` also reads files with several members, and zero bytes after the last member.
        "gzip": lambda: gzip.GzipFile(fileobj=stream),
        "bzip2": lambda: bz2.BZ2File(stream),
        "zstd": lambda: pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd"),
    }
    return cast("IO[bytes]", open_[kind]())


@contextmanager
def _open_file(path: str) -> Iterator[IO[bytes]]:
    system, location = filesystem_of(path)
    try:
        file = system.open_input_file(location)
    except OSError as error:
        raise StorageError(
            "text-file-unreadable",
            "cannot read {file}: {reason}. Grant read access or restore the file, then land again",
            file=path,
            reason=error.strerror or str(error),
        ) from error
    with file:
        yield cast("IO[bytes]", file)
