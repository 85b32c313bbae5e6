"""Streams of records. Each verb adds one named node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rewindow.dsl import joins
from rewindow.dsl.aggregating import keyed
from rewindow.dsl.branched import BranchedKStream
from rewindow.dsl.graph import NodeOptions, function_of
from rewindow.dsl.grouped import KGroupedStream
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators import foreach, stateless
from rewindow.dsl.operators.branches import Split
from rewindow.dsl.operators.transform import ProcessValues
from rewindow.dsl.record_verbs import RecordVerbs
from rewindow.errors import TopologyError
from rewindow.streams.deprecated import deprecated
from rewindow.streams.duration import to_ms
from rewindow.streams.fixed_key import FixedKeyProcessor
from rewindow.streams.processor import Processor
from rewindow.streams.serde.binding import EqualType
from rewindow.streams.settings import OnError
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.windows.join import JoinWindows

if TYPE_CHECKING:
    from rewindow.dsl.table import KTable
    from rewindow.streams.record import Record  # noqa: F401 - named in docstrings


@dataclass(frozen=True, slots=True)
class KStream(RecordVerbs):
    """A stream: each record stands for itself.

    ``key`` and ``value`` are the types as far as they are known: from the log, from the annotation of a function's
    result, or declared with ``key=`` / ``value=``. What is not known is written as JSON text.
    """

    def merge(self, *others: KStream, name: str | None = None) -> KStream:
        """Put streams together; records keep the order in which the task takes them."""
        streams = (self, *others)
        given: tuple[object, ...] = streams  # it is up to the user
        for stream in given:
            if not isinstance(stream, KStream) or stream.graph is not self.graph:
                message = (
                    f"merge of {self.node!r} with {getattr(stream, 'node', stream)!r}: give it streams of the same "
                    "StreamsBuilder; of a table its to_stream()"
                )
                raise TopologyError(message)
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

        It is called at least once for each record: a task that fails and is tried again, and a run that was killed and
        is computed again, call it again, for the same records in the same order of the partition. The idempotency key is
        the same each time and another for each call: the place of the input record and what became of it,
        ``topic/partition/offset/name/n``, or ``partition/name/n`` for what a punctuation or an epoch's end sent. It does
        not depend on how landings are put together into runs; a `backfill` of the same landings gives the same keys.
        Give it to what you write to, so that the second time does nothing. Raises `TopologyError` for another signature.
        """
        foreach.calling(action)
        self.graph.add("foreach", foreach.ForEach(action), self.node, name=name)

    def split(self, *, name: str | None = None) -> BranchedKStream:
        """Begin to split the stream by predicates, see `BranchedKStream`; ``name`` begins the names of its branches."""
        split = Split()
        node = self._then("split", split, name)
        return BranchedKStream(node, node.node, split)

    def branch(self, *predicates: Callable[[Any, Any], bool], name: str | None = None) -> list[KStream]:
        """Split by predicates and return the streams in their order (the form before KIP-418; use `split`)."""
        deprecated("branch(*predicates)", "split().branch(predicate)...")
        if not predicates:
            raise TopologyError("branch(): give it a predicate for each branch")
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
        """Run a processor of your own. ``name`` identifies its schedules and clock in checkpoints.

        ``stores`` gives new stores, or the names of stores that other nodes have too. ``key`` and ``value`` declare the
        types that it forwards. ``holds``: the longest it holds a result back, where time follows the watermark.
        ``on_error``: what becomes of a record at which it fails, ``fail``, ``retry 3``, ``quarantine`` or ``retry 3
        quarantine`` (`streams.error_policy`); the job's file may say it for every node.
        """
        options = NodeOptions(to_ms(holds), OnError.parse(on_error))
        node = self.graph.run("process", self.node, supplier, name, stores, options)
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
        """Run a `FixedKeyProcessor` of your own: as `process`, but the key stays, so grouping needs no repartition (KIP-820)."""
        node = self.graph.run(
            "process-values",
            self.node,
            ProcessValues(function_of(supplier, "process_values")),
            name,
            stores,
            NodeOptions(to_ms(holds), OnError.parse(on_error)),
        )
        return replace(self, node=node, value=value)

    def repartition(self, *, name: str, key: Any = None, value: Any = None) -> KStream:
        """Send each record to the partition of its key, through an internal log."""
        key, value = key or self.key, value or self.value
        node = self.graph.topology.add_repartition(name, self.node, key=key, value=value)
        return KStream(self.graph, node, key, value)

    def to_table(self, *, store: StoreSpec, name: str | None = None) -> KTable:
        """Take the records as updates of a table, as `StreamsBuilder.table` does; a null value is a tombstone.

        Where the key was changed, through a repartition that is named after the store.
        """
        from rewindow.dsl.table_store import kept_table  # noqa: PLC0415 - streams and tables make each other

        stream = keyed(self, materialized(store).name)
        return kept_table(stream.graph, stream.node, stream.key, stream.value, store, name=name)

    def group_by_key(self) -> KGroupedStream:
        """Group by the key; where it was changed, through a repartition that is named after the store."""
        return KGroupedStream(self)

    def group_by(self, mapper: Callable[[Any, Any], Any], *, key: Any = None) -> KGroupedStream:
        """Group by a new key, ``mapper(key, value)``; a record whose new key is null is dropped."""
        return KGroupedStream(self.select_key(mapper, key=key))

    def join(
        self,
        other: KStream | KTable,
        joiner: Callable[..., Any],
        windows: JoinWindows | None = None,
        *,
        name: str | None = None,
        store: joins.JoinStores | None = None,
        grace: str | timedelta | None = None,
        with_key: bool = False,
        value: Any = None,
    ) -> KStream:
        """Join with the records of another stream that lie close in time, or with the row that a table has of the key.

        The result is ``joiner(left, right)``, with ``with_key`` ``joiner(key, left, right)``; ``value`` declares its
        type if the joiner does not. A record without key or value is skipped and counted. Of both, equal keys must be
        in the same partition: sides that were re-keyed cross a repartition named after the join, ``name``.

        **A stream**, with ``windows``. Time: this stream's record at ``t`` joins those of the other from ``t - before``
        to ``t + after``, both included; no record is too late for that while the other side's store retains its
        partners: before + after + grace behind the newest record put there. The result's timestamp is the larger of the
        two. Order: the results of one record come by the partner's timestamp, then as the partners came. A stream
        joined with itself joins each record with itself, too. ``name`` is also that of the node and its stores,
        ``<name>-left`` and ``<name>-right``, unless ``store`` names them: a base name, a `Materialized` with a
        retention, or a pair for this side and the other.

        **A table**. Only the stream's records send results, at their own timestamps; a record finds the row that the
        table has when it is taken, of a versioned table what held at the record's timestamp. With ``grace`` (KIP-923,
        versioned tables only) records wait in the store ``name`` until the newest of them is ``grace`` ahead, or the
        watermark is, and then join by timestamp, key bytes and arrival, without their headers; one that is behind that
        already joins at once. Where source and table get records of the same timestamp, the topic that the topology
        reads first goes first.

        Raises `TopologyError` if windows, keys, stores or history do not fit, naming the fix.
        """
        options = joins.Options(windows, name, store, grace, with_key, value)
        return joins.join(self, other, joins.INNER, joiner, options)

    def left_join(
        self,
        other: KStream | KTable,
        joiner: Callable[..., Any],
        windows: JoinWindows | None = None,
        *,
        name: str | None = None,
        store: joins.JoinStores | None = None,
        grace: str | timedelta | None = None,
        with_key: bool = False,
        value: Any = None,
    ) -> KStream:
        """Join as `join` does, and send each record of this stream that finds nothing, as ``joiner(left, None)``.

        With a table that is at once. With a stream it is sent when nobody is waited for any more, once, at the record's
        own timestamp: as soon as ``timestamp + after + grace`` lies before the highest timestamp that the join has seen,
        before the results of the record that shows it, or at the watermark; a record that comes after that is sent at
        once (D12). What is due together leaves by timestamp, then key bytes, then as it came. A partner that is later
        than the grace is still joined as far as the record is retained. The records that wait are kept in
        ``<name>-left-unmatched``; below, the watermark is lowered by before + after + grace (D22).

        A record without a key goes with null at once (KIP-962); one of the other stream is skipped.
        """
        options = joins.Options(windows, name, store, grace, with_key, value)
        return joins.join(self, other, joins.LEFT, joiner, options)

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
        """Join streams as `left_join` does, and send the lone records of the other one too, as ``joiner(None, right)``.

        Of a right record the time is over once ``timestamp + before + grace`` lies before the join's clock. At equal
        timestamps right records leave before left ones.
        """
        options = joins.Options(windows, name, store, None, with_key, value)
        return joins.join(self, other, joins.OUTER, joiner, options)

    def to(self, topic: str, *, key: Any = None, value: Any = None) -> None:
        """Write an output; the job's configuration says to which table. ``key`` and ``value`` declare column types."""
        self.graph.topology.add_sink(f"{topic}-sink", topic, self.node, key=key or self.key, value=value or self.value)


def _common(types: Iterable[Any]) -> Any:
    """Return the type of streams that meet. Whether two logs have the same columns is known when types are bound."""
    different = list(dict.fromkeys(types))
    return different[0] if len(different) == 1 else EqualType(tuple(different))
