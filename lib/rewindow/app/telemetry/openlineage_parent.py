"""The parent of an operation: the operation that it is part of, or the task of a scheduler that started the command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openlineage.client import facet_v2 as facets

from rewindow.app.telemetry.facts import Operation
from rewindow.app.telemetry.openlineage_facets import PRODUCER
from rewindow.app.telemetry.openlineage_names import PARENT, ROOT, Caller, caller_in, job_of


def parent_of(operation: Operation, environ: Mapping[str, str]) -> Any:
    """Return the facet that names the parent, or None.

    The root is the scheduler's run if there is one, otherwise the outermost operation.
    """
    given = caller_in(environ, PARENT)
    first = operation
    while first.parent is not None:
        first = first.parent
    root = caller_in(environ, ROOT) or given or _own(first)
    parent = _own(operation.parent) if operation.parent else given
    if parent is None:
        return None
    known = facets.parent_run
    return known.ParentRunFacet(
        run=known.Run(parent.run),
        job=known.Job(parent.namespace, parent.job),
        root=known.Root(known.RootRun(root.run), known.RootJob(root.namespace, root.job)),
        producer=PRODUCER,
    )


def _own(operation: Operation) -> Caller:
    return Caller(*job_of(operation), operation.id)
