"""Error policies, with which a node retries or quarantines a record at which its code fails (`settings.OnError`).

Rules of this file:

1. If a node has a policy, the records that it forwards leave it only when its input record is done. So a failed attempt has
   sent nothing, and a failure in a node below is not this node's failure.
2. A failed attempt leaves no trace in stores, schedules, clocks, metrics, call ids and dropped records. Fields of the
   processor are not restored.
3. A policy covers errors of user code and of data. `MemoryError` always fails the run, because another machine may have
   more memory. Errors in punctuations, `init`, `on_watermark` and `close` always fail the run, too.
4. Retries are not counted, so that every attempt of a run has the same metrics.

The writes of a failed attempt to the node's stores are undone. Stores of nodes with a policy are slower than others, because
each write first saves the rows that it changes. Saved values need not be copied, because a store never changes a value in
place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from rewindow.errors import ConfigError, DataError, RewindowError
from rewindow.streams.error_context import reason_of
from rewindow.streams.forwarding import Take
from rewindow.streams.metrics import QUARANTINED
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.record import Record
from rewindow.streams.serde.normalizers import is_frozen
from rewindow.streams.settings import OnError, Settings
from rewindow.streams.state.join_store import RecordStore
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.session_store import SessionStore
from rewindow.streams.state.stores import JOIN, KEY_VALUE, RECORDS, SESSION, VERSIONED, WINDOW, Store
from rewindow.streams.state.versioned_store import VersionedStore
from rewindow.streams.state.window_store import WindowStore
from rewindow.streams.task_context import TaskContext
from rewindow.streams.topology import SubTopology, Topology


class ErrorPolicy:
    """The policy of one node. It wraps the functions that get the node's input (`before`) and its output (`behind`)."""

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
                # A punctuation is running. Policies do not apply to punctuations, so the records of a punctuation do not wait.
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
    """Return those error policies of a sub-topology that are not ``fail``, by node.

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
    """Return an `ErrorPolicy` for each policy that is not ``fail``, by node. Raises `ConfigError` as `policies_of` does."""
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


UNDOABLE = (KEY_VALUE, WINDOW, SESSION, VERSIONED, RECORDS, JOIN)
"""The kinds of stores that a node with an error policy may have. Stores of other kinds are only used by nodes without user
code."""
RollBack = Callable[[], None]


class Undo:
    """The undo log of one store. Its constructor wraps the store's writing methods, so that they save the rows they change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._log: list[RollBack] | None = None
        self._reset: RollBack = _nothing
        for name, savepoint in _savepoints(store).items():
            setattr(store, name, self._saving(savepoint, getattr(store, name)))
        self._keys: Any = getattr(store, "_keys", None)

    def begin(self) -> None:
        """Begin an attempt. From now on, writes are logged."""
        self._log = []
        self._reset = self._keys.savepoint()
        self._store.hold(is_held=True)

    def end(self) -> None:
        """End an attempt and keep its writes."""
        self._log = None
        self._store.hold(is_held=False)

    def roll_back(self) -> None:
        """End an attempt and undo its writes."""
        log, self._log = self._log or [], None
        for roll_back in reversed(log):
            roll_back()
        self._reset()
        self._store.hold(is_held=False)

    def _saving(self, savepoint: Callable[..., RollBack], write: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the method ``write``, so that a call first takes a savepoint while an attempt is running."""

        def saving(*args: Any, **kwargs: Any) -> Any:
            if self._log is not None:
                self._log.append(savepoint(*args, **kwargs))
            return write(*args, **kwargs)

        return saving


def _savepoints(store: Store) -> dict[str, Callable[..., RollBack]]:
    """Return, for each writing method by name, the function that saves the rows which a call with its arguments will change."""
    if isinstance(store, KeyValueStore):
        return {
            "put": lambda key, value: store.savepoint(key),  # noqa: ARG005
            "put_if_absent": lambda key, value: store.savepoint(key),  # noqa: ARG005 - it calls its own `put`
            "delete": store.savepoint,
            "put_many": lambda rows: _all_of([store.savepoint(key) for key in rows]),
            "delete_many": lambda keys: _all_of([store.savepoint(key) for key in keys]),
        }
    if isinstance(store, SessionStore):
        return {"put": lambda session, value: store.savepoint(session), "remove": store.savepoint}  # noqa: ARG005
    if isinstance(store, WindowStore):
        return {"put": lambda key, value, start_ms: store.savepoint(key, start_ms)}  # noqa: ARG005
    if isinstance(store, VersionedStore):
        return {"put": lambda key, value, timestamp: store.savepoint(key, timestamp)}  # noqa: ARG005
    if isinstance(store, RecordStore):
        return {
            "put": lambda key, value, timestamp: store.savepoint(key, timestamp),  # noqa: ARG005
            "remove": store.savepoint,
            "pop_before": store.savepoint_before,
        }
    return {}


def _all_of(savepoints: list[RollBack]) -> RollBack:
    def roll_back() -> None:
        for savepoint in reversed(savepoints):
            savepoint()

    return roll_back


def _nothing() -> None:
    pass
