"""`KStream`: a stream of records. Verbs add nodes to the topology.

This module also checks the processor classes that users write, before any record is read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from rewindow.dsl import joins
from rewindow.dsl.aggregating import keyed
from rewindow.dsl.annotations import function_of
from rewindow.dsl.branched import BranchedKStream
from rewindow.dsl.graph import Graph, NodeOptions
from rewindow.dsl.grouped import KGroupedStream
from rewindow.dsl.joins import GlobalKTable, join_global
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators import stateless, transform
from rewindow.dsl.operators.stateless import Route, Split, TopicNameExtractor
from rewindow.dsl.operators.transform import ProcessValues
from rewindow.dsl.record_verbs import RecordVerbs
from rewindow.dsl.table import kept_table
from rewindow.dsl.table_joins import INNER, LEFT, OUTER, Unmatched
from rewindow.dsl.type_checks import RecordOf
from rewindow.errors import TopologyError
from rewindow.streams.batch_processor import BatchProcessor, refuse_both_forms
from rewindow.streams.deprecated_processors import LegacyProcessor, deprecated
from rewindow.streams.duration import to_ms
from rewindow.streams.nodes import PROCESS, Partitioner, TypedBy
from rewindow.streams.processor import FixedKeyProcessor, Processor
from rewindow.streams.serde.types_to_columns import EqualType
from rewindow.streams.settings import OnError
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.windows.join import JoinWindows

if TYPE_CHECKING:
    from rewindow.dsl.table import KTable


_MEANT = ("transform", "handle", "apply", "__call__")
"""Names that other libraries use for the method that handles a record."""


@dataclass(frozen=True, slots=True)
class KStream(RecordVerbs):
    """A stream of independent records.

    ``key`` and ``value`` are the types of keys and values. A type comes from the log, from the annotated result of a
    function, or from the arguments ``key=`` and ``value=``. Keys or values of an unknown type (None) are written as JSON
    text.
    """

    def merge(self, *others: KStream, name: str | None = None) -> KStream:
        """Merge streams of the same `StreamsBuilder`. Merged records are in the order in which the task processes them."""
        streams = (self, *others)
        # User code may pass any object.
        given: tuple[object, ...] = streams
        for stream in given:
            if not isinstance(stream, KStream) or stream.graph is not self.graph:
                raise TopologyError(
                    "merge-input-invalid",
                    "merge of {node!r} with {given}: give it streams of the same StreamsBuilder, and "
                    "table.to_stream() for a table",
                    node=self.node,
                    given=repr(getattr(stream, "node", stream)),
                )
        node = self.graph.add("merge", stateless.PassThrough(), *(stream.node for stream in streams), name=name)
        return KStream(
            self.graph,
            node,
            _common(stream.key for stream in streams),
            _common(stream.value for stream in streams),
            any(stream.is_rekeyed for stream in streams),
        )

    def foreach(self, action: Callable[..., Any], *, name: str) -> None:
        """Call ``action(key, value)``, or ``action(key, value, idempotency_key)``, for each record, and end the stream.

        The action is called at least once for each record. A retried task and a repeated run call it again, for the same
        records, in the same order within the partition. The idempotency key identifies a call. It is the same in every
        repetition, even in a `backfill`, and even if landings are divided into other runs. It names the input and the node,
        as in ``job/topic/partition/offset/name/n`` (see `ProcessorContext.idempotency_key`). Pass the key to the system you
        write to, so that a repeated call has no effect. Raises `TopologyError` for any other signature.
        """
        transform.calling(action)
        node = self.graph.add("foreach", transform.ForEach(action), self.node, name=name)
        self.graph.reads(node, action, self.key, self.value)

    def split(self, *, name: str | None = None) -> BranchedKStream:
        """Split the stream by predicates: see `BranchedKStream` (KIP-418). The names of branches begin with ``name``."""
        split = Split()
        node = self._then("split", split, name)
        return BranchedKStream(node, node.node, split)

    def branch(self, *predicates: Callable[[Any, Any], bool], name: str | None = None) -> list[KStream]:
        """Split by predicates; return the branches in the order of the predicates (deprecated by KIP-418: use `split`)."""
        deprecated("branch(*predicates)", "split().branch(predicate)...")
        if not predicates:
            raise TopologyError("branch-without-predicate", "branch(): give it a predicate for each branch")
        branched = self.split(name=name)
        for predicate in predicates:
            branched.branch(predicate)
        return list(branched.no_default_branch().values())

    def process(
        self,
        supplier: Callable[[], Processor],
        *,
        name: str,
        stores: Iterable[StoreBuilder | str] = (),
        key: Any = None,
        value: Any = None,
        holds: str | timedelta = "0s",
        on_error: str = "fail",
    ) -> KStream:
        """Run your own `Processor`. ``name`` identifies its schedules and its clock in checkpoints.

        ``stores`` lists new stores, or the names of stores that other nodes share. ``key`` and ``value`` declare the types of
        the records that the processor forwards. ``holds`` is the longest time for which the processor holds a result back;
        the watermark below is lowered by this time (D22). ``on_error`` is the policy for a record at which the processor
        fails: ``fail``, ``retry 3``, ``quarantine`` or ``retry 3 quarantine``. The job's file may override the policy of any
        node.
        """
        options = NodeOptions(PROCESS, to_ms(holds), OnError.parse(on_error))
        node = self.graph.add_user_processor("process", self.node, supplier, name, stores, options)
        _check_class(self.graph, node, supplier, self.key, self.value)
        return KStream(self.graph, node, key, value, is_rekeyed=True)

    def process_values(
        self,
        supplier: Callable[[], FixedKeyProcessor],
        *,
        name: str,
        stores: Iterable[StoreBuilder | str] = (),
        value: Any = None,
        holds: str | timedelta = "0s",
        on_error: str = "fail",
    ) -> KStream:
        """Run your own `FixedKeyProcessor`: see `process`. It cannot change keys, so grouping needs no repartition (KIP-820)."""
        node = self.graph.add_user_processor(
            "process-values",
            self.node,
            ProcessValues(function_of(supplier, "process_values")),
            name,
            stores,
            NodeOptions(TypedBy("process_values", ("value",)), to_ms(holds), OnError.parse(on_error)),
        )
        _check_class(self.graph, node, supplier, self.key, self.value)
        return replace(self, node=node, value=value)

    def repartition(
        self, *, name: str, key: Any = None, value: Any = None, partitioner: Partitioner | None = None
    ) -> KStream:
        """Send each record to the partition of its key, through an internal log named after ``name``.

        Records with a null key belong to no partition. They are dropped and counted, unless a left or outer join below sends
        such records (KIP-962). ``partitioner(topic, key, value, partitions)`` may choose another partition: it returns a
        number from 0 to ``partitions - 1``, or None for the partition of the key. Any other result fails the run (exit code
        65). Aggregates and joins below are correct only if the partitioner sends equal keys to one partition.
        """
        key, value = key or self.key, value or self.value
        # The node is named after the partitioner, because an error of the partitioner names the node.
        own = f"{name}-partitioner" if partitioner else None
        keyed_only = self.graph.add("keyed-only", stateless.KeyedOnly(), self.node, name=own)
        if partitioner is not None:
            arguments = {"topic": str, "key": self.key, "value": self.value, "partitions": int}
            self.graph.calls(keyed_only, "repartition", partitioner, **arguments)
        node = self.graph.topology.add_repartition(name, keyed_only, key=key, value=value, partitioner=partitioner)
        return KStream(self.graph, node, key, value)

    def to_table(self, *, store: StoreSpec, name: str | None = None) -> KTable:
        """Interpret the records as updates of a table, as `StreamsBuilder.table` does. A null value is a tombstone.

        If the keys were changed above, records go through a repartition named after the store. Records with a null key are
        dropped and counted.
        """
        stream = keyed(self, materialized(store).name)
        return kept_table(stream.graph, stream.node, stream.key, stream.value, store, name=name)

    def group_by_key(self) -> KGroupedStream:
        """Group by key. If the keys were changed above, records go through a repartition named after the aggregate's store."""
        return KGroupedStream(self)

    def group_by(
        self, mapper: Callable[[Any, Any], Any], *, key: Any = None, name: str | None = None
    ) -> KGroupedStream:
        """Group by a new key, ``mapper(key, value)``. A record whose new key is null is dropped and counted."""
        return KGroupedStream(self.select_key(function_of(mapper, "group_by", "key", "value"), key=key, name=name))

    def join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Callable[..., Any],
        windows: JoinWindows | Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        store: joins.JoinStores | None = None,
        grace: str | timedelta | None = None,
        with_key: bool = False,
        value: Any = None,
    ) -> KStream:
        """Inner-join with the records of another stream that are close in time, or with the current row of a table.

        The result is ``joiner(left, right)`` or, with ``with_key``, ``joiner(key, left, right)``. ``value`` declares the type
        of the result; the default is the joiner's annotation. A record without key or value is skipped and counted. Equal
        keys must be in the same partition, so a side whose keys were changed goes through a repartition named after the
        join's ``name``.

        **With a stream**, ``windows`` is required. A record of this stream at ``t`` joins records of the other stream from
        ``t - before`` to ``t + after``, both inclusive. A bound before the epoch counts as 0, as in Kafka: if ``after`` is -5
        ms, a record at 3 ms joins partners at 0 ms. Late records are joined, too, as long as the other side's store retains
        their partners. It retains records up to before + after + grace behind its newest record. A result has the larger of
        the two timestamps. The results of one record are sent in the order of the partners' timestamps, then of their
        arrival. If a stream is joined with itself, each record also joins itself. ``name`` names the node and the stores
        ``<name>-left`` and ``<name>-right``. ``store`` overrides the names of the stores: a base name, a `Materialized` with
        a retention, or a pair for this side and the other.

        **With a table**, only the stream's records send results, with their own timestamps. A record joins the row that the
        table has when the record is processed. With a versioned table, a record joins the row that was valid at the record's
        timestamp. With ``grace`` (KIP-923, versioned tables only), a record waits in the store ``name`` until another record
        or the watermark is ``grace`` ahead of it. Records that are due together are joined in the order of timestamp, key
        bytes and arrival, without their headers. A record that arrives when its wait would already be over is joined at once.
        If stream and table have records with the same timestamp, the record of the topic that the topology reads first is
        processed first.

        **With a global table**, the arguments are ``join(table, key_selector, joiner)``. A record joins the table's row with
        the key ``key_selector(key, value)``, and no repartition is needed. The result has the record's own key, which may be
        null, and its timestamp. A record is skipped and counted if it has no value or its selected key is null.

        Raises `TopologyError`, which states the fix, if windows, keys, stores or history do not fit.
        """
        return self._joined(other, INNER, joiner, joins.Options(windows, name, store, grace, with_key, value))

    def left_join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Callable[..., Any],
        windows: JoinWindows | Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        store: joins.JoinStores | None = None,
        grace: str | timedelta | None = None,
        with_key: bool = False,
        value: Any = None,
    ) -> KStream:
        """Join as `join` does, and send each record of this stream without a match as ``joiner(left, None)``.

        With a table or a global table, the result without a match is sent at once. With a stream, a record first waits for a
        partner, in the store ``<name>-left-unmatched``. It waits until the join's clock (its highest timestamp so far, or the
        watermark) exceeds ``timestamp + after + grace``. Then the result is sent once, with the record's own timestamp,
        before the results of the record that advanced the clock. A record that arrives when its wait would already be over is
        sent at once (D12). Results that are due together are sent in the order of timestamp, key bytes and arrival. A partner
        that arrives after the wait is still joined, as long as the record is retained. The watermark below is lowered by
        before + after + grace (D22).

        A record of this stream without a key is sent as ``joiner(left, None)`` at once (KIP-962). With a global table, this
        applies to a record whose selected key is null. A record of the other stream without a key is skipped.
        """
        return self._joined(other, LEFT, joiner, joins.Options(windows, name, store, grace, with_key, value))

    def outer_join(
        self,
        other: KStream,
        joiner: Callable[..., Any],
        windows: JoinWindows,
        *,
        name: str,
        store: joins.JoinStores | None = None,
        with_key: bool = False,
        value: Any = None,
    ) -> KStream:
        """Join streams as `left_join` does, and also send the other stream's records without a match as ``joiner(None, right)``.

        A right record waits until the join's clock exceeds ``timestamp + before + grace``. If timestamps are equal, right
        records are sent before left records.
        """
        options = joins.Options(windows, name, store, None, with_key, value)
        return joins.join(self, other, OUTER, joiner, options)

    def to(
        self,
        topic: str | TopicNameExtractor,
        *,
        outputs: Sequence[str] | None = None,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> None:
        """Write the records to a topic, which the job's configuration maps to a table.

        ``topic`` may be a function ``topic(key, value)`` that returns the topic of each record, one of ``outputs``. If the
        function returns another name, the run fails (exit code 65), unless the job's file has another ``on_error`` for the
        node ``name``. ``key`` and ``value`` declare the types of the topic's columns.
        """
        types = {"key": key or self.key, "value": value or self.value}
        _add_sinks(self, topic, outputs, types, name)

    def _joined(
        self,
        other: KStream | KTable | GlobalKTable,
        unmatched: Unmatched,
        joiner: Callable[..., Any],
        options: joins.Options,
    ) -> KStream:
        if isinstance(other, GlobalKTable):
            return join_global(self, other, joiner, options.windows, unmatched, options)
        return joins.join(self, other, unmatched, joiner, options)


def _common(types: Iterable[Any]) -> Any:
    """Return the type of merged streams. If their types differ, return an `EqualType`, which is bound later."""
    different = list(dict.fromkeys(types))
    return different[0] if len(different) == 1 else EqualType(tuple(different))


def _add_sinks(
    stream: KStream,
    topic: str | TopicNameExtractor,
    outputs: Sequence[str] | None,
    types: Mapping[str, Any],
    name: str | None,
) -> None:
    """Add the sinks of `KStream.to`. Raises `TopologyError` if ``topic`` is a function and ``outputs`` are not distinct names.

    Also raised for ``outputs`` without a function.
    """
    graph, parent = stream.graph, stream.node
    if callable(topic):
        sinks = {output: f"{output}-sink" for output in _declared(outputs)}
        node = graph.add("route", Route(topic, tuple(sinks.items())), parent, name=name)
        graph.calls(node, "to", topic, key=stream.key, value=stream.value)
        for output, sink in sinks.items():
            graph.topology.add_sink(sink, output, node, **types)
        return
    if outputs is not None:
        raise TopologyError(
            "outputs-without-function",
            "to({topic!r}): outputs= is for a function that names the topic: leave it out",
            topic=topic,
        )
    graph.topology.add_sink(name or f"{topic}-sink", topic, parent, **types)


def _declared(outputs: object) -> Sequence[str]:
    if (
        not isinstance(outputs, list | tuple)
        or not outputs
        or not all(isinstance(topic, str) and topic for topic in outputs)
    ):
        raise TopologyError(
            "outputs-not-listed",
            "to(function, outputs={outputs}): list the topics that the function may name, outputs=['a', 'b']",
            outputs=repr(outputs),
        )
    if len(set(outputs)) < len(outputs):
        raise TopologyError(
            "outputs-topic-twice",
            "to(function, outputs={outputs}): a topic is listed twice: list each once",
            outputs=repr(outputs),
        )
    return outputs


def _check_class(graph: Graph, node: str, supplier: Callable[[], Any], key: Any, value: Any) -> None:
    """Check the methods of a processor class, and record what its ``process`` reads, for records with these types.

    Only classes are checked, not the processors that a supplier function makes. Raises `TopologyError` for a method that does
    not accept the arguments with which it is called; for a ``process`` that contains ``yield``, because it would never run;
    for a class without ``process`` that has a method with a similar name; and for a class with both ``process`` and
    ``process_batch``. The checks of ``process`` also apply to ``process_batch``.
    """
    if not isinstance(supplier, type) or not issubclass(supplier, Processor):
        return
    refuse_both_forms(node, supplier)
    if issubclass(supplier, BatchProcessor):
        _check_batches(node, supplier)
        return
    if supplier.process in (Processor.process, LegacyProcessor.process):
        own = [name for name in vars(supplier) if name not in vars(Processor)]
        meant = [*get_close_matches("process", own, 1), *(name for name in own if name in _MEANT)]
        if meant:
            raise TopologyError(
                "process-method-missing",
                "node {node!r}: {type} has no method process, so it would ignore every record: rename {method} to "
                "process",
                node=node,
                type=supplier.__name__,
                method=meant[0],
            )
        # A processor without `process` may do all its work in punctuations.
        return
    is_legacy = issubclass(supplier, LegacyProcessor)
    arguments = {"key": key, "value": value} if is_legacy else {"record": RecordOf(key, value)}
    graph.calls_method(node, supplier, "process", **arguments)
    graph.calls_method(node, supplier, "init", context=None)
    _refuse_yield(node, supplier, supplier.process, "self.context.forward(record)")


def _check_batches(node: str, supplier: type[BatchProcessor]) -> None:
    if supplier.process_batch is BatchProcessor.process_batch:
        meant = get_close_matches("process_batch", [name for name in vars(supplier) if name not in vars(Processor)], 1)
        fix = f"rename {meant[0]} to process_batch" if meant else "define it, or derive the class from Processor"
        raise TopologyError(
            "process-batch-method-missing",
            "node {node!r}: {type} has no method process_batch: {fix}",
            node=node,
            type=supplier.__name__,
            fix=fix,
        )
    function_of(supplier.process_batch, f"node {node!r}", "self", "batch")
    function_of(supplier.init, f"node {node!r}", "self", "context")
    _refuse_yield(node, supplier, supplier.process_batch, "batch.forward(index, record)")


def _refuse_yield(node: str, supplier: type[Processor], process: Callable[..., Any], send: str) -> None:
    if inspect.isgeneratorfunction(process) or inspect.iscoroutinefunction(process):
        code = process.__code__
        raise TopologyError(
            "process-method-never-runs",
            "node {node!r}: {type}.{method} ({file}:{line}) uses yield or is async, so it would never run: send "
            "each record with {call}",
            node=node,
            type=supplier.__name__,
            method=process.__name__,
            file=code.co_filename,
            line=code.co_firstlineno,
            call=send,
        )
