"""A stream that is split: each record goes into the first branch that takes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rewindow.dsl.graph import function_of
from rewindow.dsl.operators.branches import Split
from rewindow.dsl.operators.stateless import PassThrough
from rewindow.errors import TopologyError

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream


@dataclass
class BranchedKStream:
    """The branches of `KStream.split`, in the order in which they are asked (KIP-418).

    A record goes into the first branch whose predicate is true, else into the default branch, else nowhere. Time, key
    and timestamp stay as they are. The streams come back by name, ``<name of the split>-<name of the branch>``: a
    branch without a name has its number, counted from 1, and the default one ``0``.
    """

    stream: KStream
    name: str
    split: Split
    made: dict[str, KStream] = field(default_factory=dict)
    number: int = 0
    is_done: bool = False

    def branch(
        self,
        predicate: Callable[[Any, Any], bool],
        *,
        name: str | None = None,
        chain: Callable[[KStream], KStream | None] | None = None,
    ) -> BranchedKStream:
        """Add a branch of the records for which ``predicate(key, value)`` is true and no branch before it was.

        ``chain`` takes the branch and may return the stream that `default_branch` shall give in its place; what it
        gives None for is not among them. Raises `TopologyError` after the default branch, or for a name used twice.
        """
        self.number += 1
        return self._add(predicate, name or str(self.number), chain)

    def default_branch(
        self, *, name: str | None = None, chain: Callable[[KStream], KStream | None] | None = None
    ) -> dict[str, KStream]:
        """Put what no branch took into one of its own, and return all branches by name."""
        return self._add(_always, name or "0", chain).no_default_branch()

    def no_default_branch(self) -> dict[str, KStream]:
        """Drop what no branch took, and return the branches by name."""
        self.is_done = True
        return dict(self.made)

    def _add(
        self,
        predicate: Callable[[Any, Any], bool],
        name: str,
        chain: Callable[[KStream], KStream | None] | None,
    ) -> BranchedKStream:
        if self.is_done:
            message = f"split {self.name!r}: the default branch is the last one: add {name!r} before it"
            raise TopologyError(message)
        full = f"{self.name}-{name}"
        node = self.stream.graph.add("branch", PassThrough("branch"), self.stream.node, name=full)
        self.split.branches.append((function_of(predicate, "branch"), full))
        branch = replace(self.stream, node=node)
        kept = branch if chain is None else chain(branch)
        if kept is not None:
            self.made[full] = kept
        return self


def _always(_key: Any, _value: Any) -> bool:
    return True
