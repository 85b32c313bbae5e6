"""Checks of the processor classes that users write, before any record is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from rewindow.dsl.graph import Graph, function_of
from rewindow.dsl.reads import RecordOf
from rewindow.errors import TopologyError
from rewindow.streams.batch_processor import BatchProcessor, refuse_both_forms
from rewindow.streams.legacy import LegacyProcessor
from rewindow.streams.processor import Processor

_MEANT = ("transform", "handle", "apply", "__call__")
"""What other libraries call the method that handles a record."""


def check_class(graph: Graph, node: str, supplier: Callable[[], Any], key: Any, value: Any) -> None:
    """Check the methods of a processor class, and note what it reads of records of these types.

    What a function makes is not looked into. Raises `TopologyError` for methods that take other arguments than they get,
    for a ``process`` with ``yield``, which would never run, for a class without `process` whose author meant another
    method to be it, and likewise for `process_batch`; a class has one of the two.
    """
    if not isinstance(supplier, type) or not issubclass(supplier, Processor):
        return
    what = f"node {node!r}"
    refuse_both_forms(what, supplier)
    if issubclass(supplier, BatchProcessor):
        _check_batches(what, supplier)
        return
    if supplier.process in (Processor.process, LegacyProcessor.process):
        own = [name for name in vars(supplier) if name not in vars(Processor)]
        meant = [*get_close_matches("process", own, 1), *(name for name in own if name in _MEANT)]
        if meant:
            message = (
                f"{what}: {supplier.__name__} has no method process, so it would ignore every record: rename "
                f"{meant[0]} to process"
            )
            raise TopologyError(message)
        return  # it may do all its work in punctuations
    arguments = ("key", "value") if issubclass(supplier, LegacyProcessor) else ("record",)
    function_of(supplier.process, what, "self", *arguments)
    function_of(supplier.init, what, "self", "context")
    _refuse_yield(what, supplier, supplier.process, "self.context.forward(record)")
    graph.reads(node, supplier.process, None, RecordOf(key, value))


def _check_batches(what: str, supplier: type[BatchProcessor]) -> None:
    if supplier.process_batch is BatchProcessor.process_batch:
        meant = get_close_matches("process_batch", [name for name in vars(supplier) if name not in vars(Processor)], 1)
        fix = f"rename {meant[0]} to process_batch" if meant else "define it, or derive the class from Processor"
        raise TopologyError(f"{what}: {supplier.__name__} has no method process_batch: {fix}")
    function_of(supplier.process_batch, what, "self", "batch")
    function_of(supplier.init, what, "self", "context")
    _refuse_yield(what, supplier, supplier.process_batch, "batch.forward(index, record)")


def _refuse_yield(what: str, supplier: type[Processor], process: Callable[..., Any], send: str) -> None:
    if inspect.isgeneratorfunction(process) or inspect.iscoroutinefunction(process):
        code = process.__code__
        message = (
            f"{what}: {supplier.__name__}.{process.__name__} ({code.co_filename}:{code.co_firstlineno}) uses yield or is "
            f"async, so it would never run: send each record with {send}"
        )
        raise TopologyError(message)
