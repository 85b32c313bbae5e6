"""rewindow: deterministic replay of event logs in Delta tables, with the semantics of Kafka Streams.

A name is imported when it is first used, so that a command, a job or a worker loads only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type checkers; a test compares these imports with `_MODULES`
    from rewindow.app.api.project import Project
    from rewindow.app.api.results import Diff, Graph, Job, JobReport, Listing, Outcome, Verification
    from rewindow.app.api.rows import Output, State
    from rewindow.app.api.runs import Backfill, Run, Runs
    from rewindow.dsl.branched import BranchedKStream
    from rewindow.dsl.builder import StreamsBuilder
    from rewindow.dsl.cogrouped import CogroupedKStream, SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream
    from rewindow.dsl.grouped import KGroupedStream
    from rewindow.dsl.grouped_table import KGroupedTable
    from rewindow.dsl.joins import GlobalKTable
    from rewindow.dsl.materialized import Materialized
    from rewindow.dsl.operators.builtin_aggregates import Collect, Count, First, Last, Max, Mean, Min, Sum
    from rewindow.dsl.operators.window_aggregate import EmitStrategy
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
    from rewindow.streams.batch import Batch
    from rewindow.streams.batch_processor import BatchContext, BatchProcessor
    from rewindow.streams.deprecated_processors import (
        LegacyContext,
        LegacyProcessor,
        Transformer,
        ValueTransformer,
        ValueTransformerWithKey,
    )
    from rewindow.streams.processor import FixedKeyProcessor, Processor, ProcessorContext
    from rewindow.streams.punctuation import Cancellable, PunctuationType
    from rewindow.streams.record import Change, Record, RecordMetadata, To, Window, Windowed
    from rewindow.streams.state.join_store import join_store
    from rewindow.streams.state.key_value_store import KeyValueStore
    from rewindow.streams.state.session_store import SessionStore, session_store
    from rewindow.streams.state.stores import Stamped, StoreBuilder, key_value_store, window_store
    from rewindow.streams.state.versioned_store import VersionedStore, versioned_store
    from rewindow.streams.state.window_store import WindowStore
    from rewindow.streams.topology import Topology
    from rewindow.streams.windows.calendar import CalendarWindows
    from rewindow.streams.windows.join import JoinWindows
    from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
    from rewindow.streams.windows.time import TimeWindows, UnlimitedWindows

__version__ = "0.2.0.dev0"

_MODULES = {
    "app.api.project": "Project",
    "app.api.results": "Diff Graph Job JobReport Listing Outcome Verification",
    "app.api.rows": "Output State",
    "app.api.runs": "Backfill Run Runs",
    "dsl.branched": "BranchedKStream",
    "dsl.builder": "StreamsBuilder",
    "dsl.cogrouped": "CogroupedKStream SessionWindowedCogroupedKStream TimeWindowedCogroupedKStream",
    "dsl.grouped": "KGroupedStream",
    "dsl.grouped_table": "KGroupedTable",
    "dsl.joins": "GlobalKTable",
    "dsl.materialized": "Materialized",
    "dsl.operators.window_aggregate": "EmitStrategy",
    "dsl.operators.builtin_aggregates": "Collect Count First Last Max Mean Min Sum",
    "dsl.stream": "KStream",
    "dsl.suppressed": "BufferConfig Suppressed max_bytes max_records unbounded until_time_limit until_window_closes",
    "dsl.table": "KTable",
    "dsl.windowed": "SessionWindowedKStream TimeWindowedKStream",
    "errors": "RewindowError",
    "streams.batch": "Batch",
    "streams.batch_processor": "BatchContext BatchProcessor",
    "streams.deprecated_processors": "LegacyContext LegacyProcessor Transformer ValueTransformer ValueTransformerWithKey",
    "streams.processor": "FixedKeyProcessor Processor ProcessorContext",
    "streams.punctuation": "Cancellable PunctuationType",
    "streams.record": "Change Record RecordMetadata To Window Windowed",
    "streams.state.join_store": "join_store",
    "streams.state.key_value_store": "KeyValueStore",
    "streams.state.session_store": "SessionStore session_store",
    "streams.state.stores": "Stamped StoreBuilder key_value_store window_store",
    "streams.state.versioned_store": "VersionedStore versioned_store",
    "streams.state.window_store": "WindowStore",
    "streams.topology": "Topology",
    "streams.windows.calendar": "CalendarWindows",
    "streams.windows.join": "JoinWindows",
    "streams.windows.session_sliding": "SessionWindows SlidingWindows",
    "streams.windows.time": "TimeWindows UnlimitedWindows",
}
"""Maps each module to its public names."""
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Backfill",
    "Batch",
    "BatchContext",
    "BatchProcessor",
    "BranchedKStream",
    "BufferConfig",
    "CalendarWindows",
    "Cancellable",
    "Change",
    "CogroupedKStream",
    "Collect",
    "Count",
    "Diff",
    "EmitStrategy",
    "First",
    "FixedKeyProcessor",
    "GlobalKTable",
    "Graph",
    "Job",
    "JobReport",
    "JoinWindows",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KeyValueStore",
    "Last",
    "LegacyContext",
    "LegacyProcessor",
    "Listing",
    "Materialized",
    "Max",
    "Mean",
    "Min",
    "Outcome",
    "Output",
    "Processor",
    "ProcessorContext",
    "Project",
    "PunctuationType",
    "Record",
    "RecordMetadata",
    "RewindowError",
    "Run",
    "Runs",
    "SessionStore",
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "SessionWindows",
    "SlidingWindows",
    "Stamped",
    "State",
    "StoreBuilder",
    "StreamsBuilder",
    "Sum",
    "Suppressed",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
    "TimeWindows",
    "To",
    "Topology",
    "Transformer",
    "UnlimitedWindows",
    "ValueTransformer",
    "ValueTransformerWithKey",
    "Verification",
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


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
