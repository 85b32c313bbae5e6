"""Nodes that try again, or go on without a record, when their code fails at it (`settings.OnError`).

Rules of this file:

1. What such a node forwards leaves it when its record is done: a failed attempt has sent nothing, and whatever fails
   further down is not its own failure.
2. A failed attempt leaves no trace in stores, schedules, clocks, metrics, places and what was dropped. Fields of the
   processor are its author's business.
3. Only errors of user code and of data are forgiven, and no lack of memory: another machine has more. Punctuations,
   `init`, `on_watermark` and `close` always fail.
4. Retries are not counted: what is counted is the same in every attempt of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy

from rewindow.errors import ConfigError, DataError, RewindowError
from rewindow.streams.error_context import reason_of
from rewindow.streams.metrics import QUARANTINED
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.record import Record
from rewindow.streams.serde.values import is_frozen
from rewindow.streams.settings import OnError, Settings
from rewindow.streams.state.savepoint import UNDOABLE, Undo
from rewindow.streams.state.stores import Store
from rewindow.streams.task_context import TaskContext
from rewindow.streams.topology import SubTopology, Topology

Take = Callable[[Record], None]


class ErrorPolicy:
    """Stands before one node."""

    def __init__(
        self, node: ProcessorNode, policy: OnError, task_context: TaskContext, undos: Mapping[str, Undo]
    ) -> None:
        """``undos`` has each of the node's stores."""
        self._node, self._policy, self._task_context = node.name, policy, task_context
        self._undos = [undos[store] for store in node.stores]
        self._measured = (node.name, *node.stores)
        self._pending: list[tuple[Take, Record, int]] | None = None

    def before(self, take: Take) -> Take:
        """Return what takes the node's records."""

        def with_policy(record: Record) -> None:
            self._handle(take, record)

        return with_policy

    def behind(self, take: Take) -> Take:
        """Return what takes the node's forwards to one child: they wait until its record is done."""

        def later(record: Record) -> None:
            if self._pending is None:
                take(record)  # of a punctuation
            else:
                if not is_frozen(record.value):  # whoever forwards it may go on changing it
                    record = record.with_value(deepcopy(record.value))
                self._pending.append((take, record, self._task_context.record_context.timestamp))

        return later

    def _handle(self, take: Take, record: Record) -> None:
        for left in range(self._policy.retries, -1, -1):
            put_back = self._begin()
            try:
                take(record)
            except Exception as error:
                put_back()
                is_ours = isinstance(error, RewindowError) and not isinstance(error, DataError)
                if is_ours or isinstance(error, MemoryError) or (not left and not self._policy.quarantines):
                    raise
                if not left:
                    self._quarantine(record, error)
            else:
                self._end()
                return

    def _begin(self) -> Callable[[], None]:
        task_context = self._task_context
        self._pending = []
        schedules, metrics = task_context.schedules.mark(), task_context.metrics.mark(self._measured)
        call_ids, clock = task_context.call_ids.counts(self._node), task_context.node_times.get(self._node)
        timestamp = task_context.record_context.timestamp
        task_context.hold_drops()
        for undo in self._undos:
            undo.begin()

        def put_back() -> None:
            self._pending = None
            for undo in self._undos:
                undo.roll_back()
            task_context.let_drops_go(keep=False)
            schedules()
            metrics()
            task_context.call_ids.restore(call_ids)
            task_context.record_context.timestamp = timestamp
            if clock is None:
                task_context.node_times.pop(self._node, None)
            else:
                task_context.node_times[self._node] = clock

        return put_back

    def _end(self) -> None:
        for undo in self._undos:
            undo.end()
        self._task_context.let_drops_go(keep=True)
        pending, self._pending = self._pending or [], None
        record_context = self._task_context.record_context
        before = record_context.timestamp
        for take, record, timestamp in pending:
            record_context.timestamp = timestamp
            take(record)
        record_context.timestamp = before

    def _quarantine(self, record: Record, error: Exception) -> None:
        self._task_context.metrics.measure("node", self._node, QUARANTINED, type(error).__name__).record()
        self._task_context.quarantine(self._node, reason_of(error), record)


def policies_of(part: SubTopology, given: Mapping[str, OnError]) -> dict[str, OnError]:
    """Return the policies of a sub-topology's nodes that are not ``fail``: the job's file wins over the code.

    Raises `ConfigError` (78) for a node that runs no code of users, and whose store has no undo therefore.
    """
    kinds = {store.name: store.kind for store in part.stores}
    found = {}
    for node in part.nodes:
        if isinstance(node, ProcessorNode):
            policy = given.get(node.name, node.on_error)
            if policy.is_undeclared:
                continue
            for store in node.stores:
                if kinds[store] not in UNDOABLE:
                    message = (
                        f"node {node.name!r} has on_error, but runs no code of yours (its store {store!r} is a "
                        f"{kinds[store]} one): give the policy to the node before it, whose function makes its records"
                    )
                    raise ConfigError(message)
            found[node.name] = policy
    return found


def error_policies(
    part: SubTopology, settings: Settings, task_context: TaskContext, stores: Mapping[str, Store]
) -> dict[str, ErrorPolicy]:
    """Return a guard for each node that has a policy. Raises `ConfigError` as `policies_of` does."""
    policies = policies_of(part, settings.on_error)
    nodes = [node for node in part.nodes if isinstance(node, ProcessorNode) and node.name in policies]
    undos = {name: Undo(stores[name]) for node in nodes for name in node.stores}
    return {node.name: ErrorPolicy(node, policies[node.name], task_context, undos) for node in nodes}


def check_policies(topology: Topology, given: Mapping[str, OnError]) -> bool:
    """Return whether any node of a topology quarantines.

    Raises `ConfigError` (78) as `policies_of` does, and for a policy of a node that is not there or has no code.
    """
    nodes = [node.name for node in topology.nodes.values() if isinstance(node, ProcessorNode)]
    for name in given:
        if name not in nodes:
            message = f"on_error names the node {name!r}, which is none that has code (there are {', '.join(nodes)})"
            raise ConfigError(message)
    policies = [policies_of(part, given) for part in topology.sub_topologies()]
    return any(policy.quarantines for found in policies for policy in found.values())
