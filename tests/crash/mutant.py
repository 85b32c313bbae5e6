"""A mutant: production code broken on purpose, and the probes of which one must see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.crash.probes import Probe
from tests.crash.rewriting import Rewrite


@dataclass(frozen=True)
class Mutant:
    """A fault with a name, and the probes that should see it."""

    name: str
    rewrites: Sequence[Rewrite]
    probes: Sequence[Probe] = field(default_factory=tuple)

    def apply(self) -> None:
        """Break the code of this process."""
        for rewrite in self.rewrites:
            rewrite.apply()
