"""The project's code in Spark's workers, which outlive a command where the process does.

Local workers import it anew for each task. Remote ones have what was sent when the session started.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

from rewindow.config.target import TargetConfig
from rewindow.engine.spark.shipping import CODE
from rewindow.errors import ConfigError

_REUSE = "spark.python.worker.reuse"


def with_new_workers(target: TargetConfig) -> TargetConfig:
    """Return a target whose local Spark takes a new worker for each task: a used one knows the code of an earlier call."""
    if target.master or target.connect:
        return target
    return target.model_copy(update={"spark": {_REUSE: "false", **target.spark}})


class RemoteCode:
    """What the workers of this process's Spark session import, if they are not local."""

    _sent: ClassVar[tuple[Path, str] | None] = None
    """The project and the digest of its code. All callers in a process share one session."""

    def __init__(self, root: Path, target: TargetConfig) -> None:
        self._root, self._is_remote = root, bool(target.master or target.connect)

    def check(self) -> str:
        """Return the digest of the project's code now. Raises `ConfigError` (78) if the workers have other code."""
        if not self._is_remote:
            return ""
        now, sent = self._digest(), RemoteCode._sent
        if sent is not None and sent != (self._root, now):
            why = "the project's code has changed" if sent[0] == self._root else f"it was started for {sent[0]}"
            message = (
                f"Spark's workers have other code than {self._root} has now: {why}. Restart the process (the kernel)"
            )
            raise ConfigError(message)
        return now

    def was_sent(self, digest: str) -> None:
        """Note that the session runs, with the code of this digest."""
        if self._is_remote and RemoteCode._sent is None:
            RemoteCode._sent = (self._root, digest)

    def _digest(self) -> str:
        files = [path for name in CODE for path in sorted((self._root / name).rglob("*.py"))]
        texts = [f"{path.relative_to(self._root)}\n".encode() + path.read_bytes() for path in files]
        return blake2b(b"\0".join(texts), digest_size=16).hexdigest()
