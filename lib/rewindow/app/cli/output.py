"""Standard output and error that nobody may be reading any more: `rewindow show JOB | head -1`."""

from __future__ import annotations

import io
import sys
from typing import TextIO


class _Pipe(io.FileIO):
    """A file descriptor that drops what a closed pipe refuses, so that a command ends as it would have without a pipe."""

    def write(self, data: object) -> int:
        """Write some bytes and return how many; all of them if nobody reads."""
        try:
            return super().write(data) or 0  # type: ignore[arg-type]
        except BrokenPipeError:
            return memoryview(data).nbytes  # type: ignore[arg-type]


def tolerate_closed_pipes() -> None:
    """Let the output of this process outlive its readers."""
    sys.stdout, sys.stderr = _tolerant(sys.stdout), _tolerant(sys.stderr)


def _tolerant(stream: TextIO) -> TextIO:
    """Return a stream to the same descriptor; the stream itself if it has none, as in a notebook."""
    try:
        number = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return stream
    stream.flush()
    buffer = io.BufferedWriter(_Pipe(number, "wb", closefd=False))
    return io.TextIOWrapper(
        buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=stream.isatty() or stream is sys.stderr
    )
