"""A mutant: deliberately broken production code, and the probes of which at least one must detect it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.crash.probes import Probe
from tests.crash.rewriting import Rewrite


@dataclass(frozen=True)
class Mutant:
    """A named fault, and the probes that should detect it."""

    name: str
    rewrites: Sequence[Rewrite]
    probes: Sequence[Probe] = field(default_factory=tuple)

    def apply(self) -> None:
        """Break the code in this process."""
        for rewrite in self.rewrites:
            rewrite.apply()
