"""Error policies, with which a node retries or quarantines a record at which its code fails (`settings.OnError`).

Rules of this file:

1. If a node has a policy, the records that it forwards leave it only when its input record is done. So a failed attempt has
   sent nothing, and a failure in a node below is not this node's failure.
2. A failed attempt leaves no trace in stores, schedules, clocks, metrics, call ids and dropped records. Fields of the
   processor are not restored.
3. A policy covers errors of user code and of data. `MemoryError` always fails the run, because another machine may have
   more memory. Errors in punctuations, `init`, `on_watermark` and `close` always fail the run, too.
4. Retries are not counted, so that every attempt of a run has the same metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy

from rewindow.errors import ConfigError, DataError, RewindowError
from rewindow.streams.error_context import reason_of
from rewindow.streams.forwarding import Take
from rewindow.streams.metrics import QUARANTINED
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.record import Record
from rewindow.streams.serde.normalizers import is_frozen
from rewindow.streams.settings import OnError, Settings
from rewindow.streams.state.savepoint import UNDOABLE, Undo
from rewindow.streams.state.stores import Store
from rewindow.streams.task_context import TaskContext
from rewindow.streams.topology import SubTopology, Topology


class ErrorPolicy:
    """The policy of one node. It wraps the functions that take the node's input (`before`) and its output (`behind`)."""

    def __init__(
        self, node: ProcessorNode, policy: OnError, task_context: TaskContext, undos: Mapping[str, Undo]
    ) -> None:
        """``undos`` maps each of the node's stores to its undo log."""
        self._node, self._policy, self._task_context = node.name, policy, task_context
        self._undos = [undos[store] for store in node.stores]
        self._measured = (node.name, *node.stores)
        self._pending: list[tuple[Take, Record, int]] | None = None

    def before(self, take: Take) -> Take:
        """Wrap ``take``, which handles an input record of the node, so that the policy retries or quarantines the record."""

        def with_policy(record: Record) -> None:
            self._handle(take, record)

        return with_policy

    def behind(self, take: Take) -> Take:
        """Wrap ``take`` of one of the node's children, so that forwarded records wait until the node's input record is done."""

        def later(record: Record) -> None:
            if self._pending is None:
                # A punctuation is running. Policies do not apply to punctuations, so its records do not wait.
                take(record)
            else:
                # The processor may still modify the value.
                if not is_frozen(record.value):
                    record = record.with_value(deepcopy(record.value))
                self._pending.append((take, record, self._task_context.record_context.timestamp))

        return later

    def _handle(self, take: Take, record: Record) -> None:
        for left in range(self._policy.retries, -1, -1):
            roll_back = self._begin()
            try:
                take(record)
            except Exception as error:
                roll_back()
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
        restore_schedules, restore_metrics = task_context.schedules.mark(), task_context.metrics.mark(self._measured)
        call_ids, clock = task_context.call_ids.counts(self._node), task_context.node_times.get(self._node)
        timestamp = task_context.record_context.timestamp
        task_context.hold_drops()
        for undo in self._undos:
            undo.begin()

        def roll_back() -> None:
            self._pending = None
            for undo in self._undos:
                undo.roll_back()
            task_context.release_drops(keep=False)
            restore_schedules()
            restore_metrics()
            task_context.call_ids.restore(call_ids)
            task_context.record_context.timestamp = timestamp
            if clock is None:
                task_context.node_times.pop(self._node, None)
            else:
                task_context.node_times[self._node] = clock

        return roll_back

    def _end(self) -> None:
        for undo in self._undos:
            undo.end()
        self._task_context.release_drops(keep=True)
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
    """Return, by node, the error policies of a sub-topology other than ``fail``.

    ``given`` has the policies of the job's file, which override the policies in the code. Raises `ConfigError` (78) for a
    built-in node whose store cannot be rolled back.
    """
    kinds = {store.name: store.kind for store in part.stores}
    policies = {}
    for node in part.nodes:
        if isinstance(node, ProcessorNode):
            policy = given.get(node.name, node.on_error)
            if policy.is_fail:
                continue
            for store in node.stores:
                if kinds[store] not in UNDOABLE:
                    raise ConfigError(
                        "on-error-node-without-code",
                        "node {node!r} has on_error, but runs no code of yours (its store {store!r} is a {kind} "
                        "store): give the policy to the node before it, whose function makes its records",
                        node=node.name,
                        store=store,
                        kind=kinds[store],
                    )
            policies[node.name] = policy
    return policies


def error_policies(
    part: SubTopology, settings: Settings, task_context: TaskContext, stores: Mapping[str, Store]
) -> dict[str, ErrorPolicy]:
    """Return, by node, an `ErrorPolicy` for each policy other than ``fail``. Raises `ConfigError` as `policies_of` does."""
    policies = policies_of(part, settings.on_error)
    nodes = [node for node in part.nodes if isinstance(node, ProcessorNode) and node.name in policies]
    undos = {name: Undo(stores[name]) for node in nodes for name in node.stores}
    return {node.name: ErrorPolicy(node, policies[node.name], task_context, undos) for node in nodes}


def check_policies(topology: Topology, given: Mapping[str, OnError]) -> bool:
    """Return whether any node of a topology quarantines records. ``given`` has the policies of the job's file, by node.

    Raises `ConfigError` (78) as `policies_of` does, and for a policy whose node is unknown or has no code.
    """
    nodes = [node.name for node in topology.nodes.values() if isinstance(node, ProcessorNode)]
    for name in given:
        if name not in nodes:
            raise ConfigError(
                "on-error-node-unknown",
                "on_error names {node!r}, which is not a node with code (those are {nodes})",
                node=name,
                nodes=", ".join(nodes),
            )
    policies = [policies_of(part, given) for part in topology.sub_topologies()]
    return any(policy.quarantines for of_nodes in policies for policy in of_nodes.values())
