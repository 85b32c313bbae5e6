"""rewindow: deterministic replay of event logs in Delta tables, with the semantics of Kafka Streams."""

from rewindow.core.adapted import FixedKeyProcessor
from rewindow.core.join_windows import JoinWindows
from rewindow.core.legacy import LegacyProcessor, Transformer, ValueTransformer, ValueTransformerWithKey
from rewindow.core.moving_windows import SessionWindows, SlidingWindows
from rewindow.core.processor import Processor, ProcessorContext
from rewindow.core.punctuation import Cancellable, PunctuationType
from rewindow.core.record import Change, Record, RecordMetadata, To, Window, Windowed
from rewindow.core.state.key_value_store import KeyValueStore
from rewindow.core.state.record_store import join_store
from rewindow.core.state.session_store import SessionStore, session_store
from rewindow.core.state.versioned_store import VersionedStore, versioned_store
from rewindow.core.state.window_store import WindowStore
from rewindow.core.stores import Stamped, StoreBuilder, key_value_store, window_store
from rewindow.core.topology import Topology
from rewindow.core.windows import TimeWindows, UnlimitedWindows
from rewindow.dsl.branched import BranchedKStream
from rewindow.dsl.builder import StreamsBuilder
from rewindow.dsl.grouped import KGroupedStream
from rewindow.dsl.grouped_table import KGroupedTable
from rewindow.dsl.materialized import Materialized
from rewindow.dsl.stream import KStream
from rewindow.dsl.suppressed import (
    BufferConfig,
    Suppressed,
    max_bytes,
    max_records,
    unbounded,
    until_time_limit,
    until_window_closes,
)
from rewindow.dsl.table import KTable
from rewindow.dsl.windowed import SessionWindowedKStream, TimeWindowedKStream
from rewindow.errors import RewindowError
from rewindow.operators.aggregates import Count, Max, Mean, Min, Sum
from rewindow.operators.ordered import Collect, First, Last
from rewindow.operators.windowed import EmitStrategy

__all__ = [
    "BranchedKStream",
    "BufferConfig",
    "Cancellable",
    "Change",
    "Collect",
    "Count",
    "EmitStrategy",
    "First",
    "FixedKeyProcessor",
    "JoinWindows",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KeyValueStore",
    "Last",
    "LegacyProcessor",
    "Materialized",
    "Max",
    "Mean",
    "Min",
    "Processor",
    "ProcessorContext",
    "PunctuationType",
    "Record",
    "RecordMetadata",
    "RewindowError",
    "SessionStore",
    "SessionWindowedKStream",
    "SessionWindows",
    "SlidingWindows",
    "Stamped",
    "StoreBuilder",
    "StreamsBuilder",
    "Sum",
    "Suppressed",
    "TimeWindowedKStream",
    "TimeWindows",
    "To",
    "Topology",
    "Transformer",
    "UnlimitedWindows",
    "ValueTransformer",
    "ValueTransformerWithKey",
    "VersionedStore",
    "Window",
    "WindowStore",
    "Windowed",
    "join_store",
    "key_value_store",
    "max_bytes",
    "max_records",
    "session_store",
    "unbounded",
    "until_time_limit",
    "until_window_closes",
    "versioned_store",
    "window_store",
]
