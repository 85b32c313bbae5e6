"""What a command said, as values and as the sentences that `rewindow` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewindow.app.api.show import lines
from rewindow.app.sentences import landed_lines
from rewindow.control.ingest.protocols import LandReport


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(Mapping[str, Any]):
    """The result of a command: a mapping of the values that it prints with ``--json``, and its sentences."""

    values_by_name: Mapping[str, Any]
    sentences: tuple[str, ...]

    def __getitem__(self, name: str) -> Any:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        return lines(self.sentences)


def outcome_of_landing(feed: str, landed: LandReport) -> Outcome:
    """Return what `land` said, warnings first."""
    return Outcome(landed.as_json(), (*(f"warning: {one}" for one in landed.warnings), *landed_lines(feed, landed)))
