"""Relay stderr of the JVM and its Python workers, without noise."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Printed before any logger exists, because Spark 4.2 requires the module.
_INCUBATOR: Final = b"WARNING: Using incubator modules"
_TRACEBACK: Final = b"Traceback (most recent call last):"
# A failed worker leaves its daemon with a closed pipe. The failure itself reaches the driver as an exception.
_DAEMON: Final = b"/pyspark/daemon.py"
_KEPT_LINES: Final = 20


class Relay:
    """A pipe whose lines are relayed to stderr. It keeps the last lines, to explain why a JVM did not start."""

    def __init__(self, *, everything: bool = False, to: int = 2) -> None:
        """Start relaying to the file descriptor ``to``. ``everything`` includes noise."""
        read_end, self.write_end = os.pipe()
        self._everything, self._to = everything, to
        self._lines: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self._thread = threading.Thread(target=self._run, args=(read_end,), name="jvm-stderr", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the write end in this process. Processes that inherited it keep theirs."""
        os.close(self.write_end)

    def last_line(self) -> str:
        """Return the last line, after all writers have ended (waits up to 5 s)."""
        self._thread.join(timeout=5)
        last = next((line for line in reversed(self._lines) if line.strip()), b"no output")
        return last.decode(errors="replace").strip()

    def _run(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb") as lines:
            for block in _blocks(lines):
                if self._everything or not _is_noise(block):
                    self._lines.extend(block)
                    os.write(self._to, b"".join(block))


def _is_noise(block: list[bytes]) -> bool:
    if block[0].startswith(_INCUBATOR):
        return True
    frames = [line for line in block if line.lstrip().startswith(b"File ")]
    return block[0].startswith(_TRACEBACK) and bool(frames) and all(_DAEMON in frame for frame in frames)


def _blocks(lines: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield single lines, and each Python traceback as one block."""
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if block[0].startswith(_TRACEBACK) and (len(block) == 1 or line[:1].isspace()):
            continue
        yield block
        block = []
    if block:
        yield block
