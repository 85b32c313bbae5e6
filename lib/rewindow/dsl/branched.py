"""`BranchedKStream`: a stream split into branches by predicates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rewindow.dsl.operators.stateless import PassThrough, Split
from rewindow.errors import TopologyError

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream


@dataclass
class BranchedKStream:
    """The branches of `KStream.split`, in the order of their predicates (KIP-418).

    A record goes into the first branch whose predicate is true, with its key, value and timestamp. If no predicate is true, it
    goes into the default branch, or is dropped if there is no default branch. The result maps
    ``<name of the split>-<name of the branch>`` to the branch's stream. An unnamed branch is named by its number, counted from
    1; an unnamed default branch is named ``0``.
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
        """Add a branch for the records for which ``predicate(key, value)`` is true, and all earlier predicates are false.

        ``chain`` is called with the branch's stream. The stream that it returns is in the result. If it returns None, the
        result does not have this branch. Raises `TopologyError` after the default branch, and for a name that is used twice.
        """
        self.number += 1
        return self._add(predicate, name or str(self.number), chain)

    def default_branch(
        self, *, name: str | None = None, chain: Callable[[KStream], KStream | None] | None = None
    ) -> dict[str, KStream]:
        """Add a default branch for the remaining records, and return all branches by name."""
        return self._add(_always, name or "0", chain).no_default_branch()

    def no_default_branch(self) -> dict[str, KStream]:
        """Drop the remaining records, and return the branches by name."""
        self.is_done = True
        return dict(self.made)

    def _add(
        self,
        predicate: Callable[[Any, Any], bool],
        name: str,
        chain: Callable[[KStream], KStream | None] | None,
    ) -> BranchedKStream:
        if self.is_done:
            raise TopologyError(
                "branch-after-default",
                "split {split!r}: the default branch is the last one: add {branch!r} before it",
                split=self.name,
                branch=name,
            )
        full = f"{self.name}-{name}"
        node = self.stream.graph.add("branch", PassThrough("branch"), self.stream.node, name=full)
        self.stream.graph.calls(node, "branch", predicate, key=self.stream.key, value=self.stream.value)
        self.split.branches.append((predicate, full))
        branch = replace(self.stream, node=node)
        kept = branch if chain is None else chain(branch)
        if kept is not None:
            self.made[full] = kept
        return self


def _always(_key: Any, _value: Any) -> bool:
    return True
