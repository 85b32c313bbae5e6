"""What the JVM and its Python workers say on stderr, passed on without what tells nobody anything."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Printed before any logger is there, because Spark 4.2 asks for the module.
_INCUBATOR: Final = b"WARNING: Using incubator modules"
_TRACEBACK: Final = b"Traceback (most recent call last):"
# A worker that has failed leaves its daemon with a closed pipe; the failure itself reaches the driver as an exception.
_DAEMON: Final = b"/pyspark/daemon.py"
_LAST_WORDS: Final = 20


class Relay:
    """A pipe to write to, whose lines go on to stderr. Keeps the last of them, to tell why a JVM did not start."""

    def __init__(self, *, everything: bool = False, to: int = 2) -> None:
        """Start passing on. ``everything``: noise too. ``to``: a file descriptor."""
        read_end, self.write_end = os.pipe()
        self._everything, self._to = everything, to
        self._said: deque[bytes] = deque(maxlen=_LAST_WORDS)
        self._thread = threading.Thread(target=self._run, args=(read_end,), name="jvm-stderr", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close our end; the processes that inherited it go on."""
        os.close(self.write_end)

    def last_word(self) -> str:
        """Return the last line that was said, once all that write have ended (waits up to 5 s for it)."""
        self._thread.join(timeout=5)
        said = next((line for line in reversed(self._said) if line.strip()), b"it said nothing")
        return said.decode(errors="replace").strip()

    def _run(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb") as lines:
            for block in _blocks(lines):
                if self._everything or not _is_noise(block):
                    self._said.extend(block)
                    os.write(self._to, b"".join(block))


def _is_noise(block: list[bytes]) -> bool:
    if block[0].startswith(_INCUBATOR):
        return True
    frames = [line for line in block if line.lstrip().startswith(b"File ")]
    return block[0].startswith(_TRACEBACK) and bool(frames) and all(_DAEMON in frame for frame in frames)


def _blocks(lines: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield single lines, and a Python traceback as one block."""
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if block[0].startswith(_TRACEBACK) and (len(block) == 1 or line[:1].isspace()):
            continue
        yield block
        block = []
    if block:
        yield block
