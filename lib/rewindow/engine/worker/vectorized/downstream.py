"""The processors and the sink behind the results of a task."""

from __future__ import annotations

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.engine.worker.record_writers import OutputWriter, writer_of
from rewindow.engine.worker.vectorized.errors import UnfitError
from rewindow.engine.worker.vectorized.suffix import Suffix
from rewindow.errors import DataError
from rewindow.streams.assembly import assemble
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import Metrics
from rewindow.streams.sink import open_sinks
from rewindow.streams.task_context import TaskContext


class Downstream:
    """Sends records through the nodes of a suffix. Set ``record_context`` to the current event before each record."""

    def __init__(self, suffix: Suffix, metrics: Metrics, work: SubTopologyWork, task_work: TaskWork) -> None:
        """Connect the processors and the sink."""
        (sink,) = suffix.part.sinks
        writer = self._writer = writer_of(work, task_work, sink, suffix.sink_shapes)
        state = task_work.state or TaskState()
        context = TaskContext(task_work.partition, state, {}, job=work.identity.job)
        context.metrics = metrics
        take = writer if isinstance(writer, OutputWriter) else writer.take
        sinks = open_sinks(suffix.part, lambda _: take, context, state.emitted, work.code.settings.limits)
        assembly = assemble(suffix.part, context, sinks, {})
        for name, processor in assembly.processors.items():
            processor.init(assembly.contexts[name])
        (self.process,), (self._sink,) = assembly.entries, sinks.values()
        self.record_context = context.record_context

    @property
    def emitted(self) -> int:
        """The number of the sink's next record."""
        return self._sink.number

    def begin(self, epoch: int) -> None:
        """Set the epoch of the next records."""
        self._writer.epoch = epoch

    def close(self) -> list[StagedFile]:
        """Finish the files and return them. Raises `UnfitError` for a record that does not fit the sink."""
        try:
            return self._writer.close()
        except DataError as error:
            raise UnfitError from error

    def abort(self) -> None:
        """Delete the files."""
        self._writer.abort()
