"""The OpenLineage events that describe what an operation read and wrote. Imported only if events are sent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from openlineage.client import facet_v2 as facets
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import BaseFacet

from rewindow.app.failures import Failure
from rewindow.app.telemetry.command_facts import ColumnOrigins, Facts, Operation, Read, Table, Written
from rewindow.app.telemetry.openlineage_names import PARENT, ROOT, Caller, caller_in, dataset_of, job_of, symlink_of
from rewindow.app.version import running_version
from rewindow.contracts.exit_codes import what_next
from rewindow.dsl.column_origins import Origin

VERSION = running_version()
PRODUCER = f"urn:rewindow:{VERSION}"
"""The producer of an event. It is a name and not an address, because rewindow is not published anywhere yet."""
SCHEMAS = "urn:rewindow:openlineage:1-0-0"
"""The version of the schemas of rewindow's own facets. Each event names the version, so a changed schema needs a new one."""


class _Facet(BaseFacet):  # type: ignore[misc, unused-ignore]
    """The base of rewindow's own facets. The client calls `_get_schema` of a facet's class."""


def custom(name: str, values: Mapping[str, Any]) -> Any:
    """Return one of rewindow's own facets with JSON values. Values that are None are left out of the event."""
    url = f"{SCHEMAS}:{name}.json#/$defs/{name}"
    facet = type(name, (_Facet,), {"_get_schema": staticmethod(lambda: url), "__slots__": ()})
    return facet(producer=PRODUCER).with_additional_properties(**values)


def parent_of(operation: Operation, environ: Mapping[str, str]) -> Any:
    """Return the facet that names the parent run and the root run; None without a parent.

    The root is the run of the scheduler. Without a scheduler, it is the outermost operation.
    """
    given = caller_in(environ, PARENT)
    first = operation
    while first.parent is not None:
        first = first.parent
    root = caller_in(environ, ROOT) or given or _own(first)
    parent = _own(operation.parent) if operation.parent else given
    if parent is None:
        return None
    facet = facets.parent_run
    return facet.ParentRunFacet(
        run=facet.Run(parent.run),
        job=facet.Job(parent.namespace, parent.job),
        root=facet.Root(facet.RootRun(root.run), facet.RootJob(root.namespace, root.job)),
        producer=PRODUCER,
    )


def _own(operation: Operation) -> Caller:
    return Caller(*job_of(operation), operation.id)


def event(state: str, operation: Operation, at_ms: int, facts: Facts, failure: Failure | None = None) -> RunEvent:
    """Return the OpenLineage event of an operation. ``state`` is START, COMPLETE, FAIL or ABORT; ``at_ms`` is in epoch ms."""
    namespace, name = job_of(operation)
    kind = _made(facets.job_type_job.JobTypeJobFacet, "BATCH", "REWINDOW", operation.kind.upper())
    return RunEvent(
        eventType=RunState(state),
        eventTime=datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        run=Run(operation.id, _run_facets(operation, facts, failure)),
        job=Job(namespace, name, {"jobType": kind}),
        inputs=[_input(read) for read in facts.inputs],
        outputs=[_output(written) for written in facts.outputs],
        producer=PRODUCER,
    )


def _run_facets(operation: Operation, facts: Facts, failure: Failure | None) -> dict[str, Any]:
    values: dict[str, Any] = {
        "command": operation.kind,
        "project": operation.project,
        "target": operation.target,
        "feed" if operation.kind == "land" else "job": operation.subject,
        **({"branch": operation.branch} if operation.branch else {}),
        **facts.details,
    }
    run_facets: dict[str, Any] = {
        "processing_engine": _made(
            facets.processing_engine_run.ProcessingEngineRunFacet,
            VERSION,
            name="rewindow",
            openlineageAdapterVersion=VERSION,
        )
    }
    if parent := parent_of(operation, os.environ):
        run_facets["parent"] = parent
    if failure is not None:
        values["exit_code"], values["error"] = failure.exit_code, failure.kind
        values["next"] = what_next(failure.exit_code).value
        text = f"exit code {failure.exit_code}: {failure.message}"
        run_facets["errorMessage"] = _made(facets.error_message_run.ErrorMessageRunFacet, text, "PYTHON")
    run_facets["rewindow_run"] = custom("RewindowRunFacet", values)
    return run_facets


def _input(read: Read) -> InputDataset:
    statistics: dict[str, Any] = {}
    if read.records is not None:
        statistics["inputStatistics"] = _made(
            facets.input_statistics_input_dataset.InputStatisticsInputDatasetFacet, rowCount=read.records
        )
    dataset_facets = _dataset_facets(read.table)
    if read.landings is not None:
        dataset_facets["rewindow_landings"] = custom("RewindowLandingsDatasetFacet", read.landings)
    return InputDataset(*dataset_of(read.table), inputFacets=statistics, facets=dataset_facets)


def _output(written: Written) -> OutputDataset:
    statistics: dict[str, Any] = {}
    if written.rows is not None:
        statistics["outputStatistics"] = _made(
            facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
            rowCount=written.rows,
            size=written.bytes,
            fileCount=written.files,
        )
    dataset_facets = _dataset_facets(written.table)
    if written.landings is not None:
        dataset_facets["rewindow_landings"] = custom("RewindowLandingsDatasetFacet", written.landings)
    if written.commit is not None:
        dataset_facets["rewindow_commit"] = custom("RewindowCommitDatasetFacet", written.commit)
    if written.origins is not None:
        dataset_facets["columnLineage"] = _column_origins(written.origins)
    return OutputDataset(*dataset_of(written.table), outputFacets=statistics, facets=dataset_facets)


def _dataset_facets(table: Table) -> dict[str, Any]:
    is_delta = table.format == "delta"
    layer, files = ("delta", "parquet") if is_delta else ("file", table.format)
    dataset_facets: dict[str, Any] = {"storage": _made(facets.storage_dataset.StorageDatasetFacet, layer, files)}
    if table.columns:
        fields = [
            facets.schema_dataset.SchemaDatasetFacetFields(column.name, column.type, ordinal_position=position)
            for position, column in enumerate(table.columns, start=1)
        ]
        dataset_facets["schema"] = _made(facets.schema_dataset.SchemaDatasetFacet, fields)
    if table.version is not None:
        dataset_facets["version"] = _made(facets.dataset_version_dataset.DatasetVersionDatasetFacet, str(table.version))
    if table.catalog_host is not None:
        dataset_facets["catalog"] = _made(
            facets.catalog_dataset.CatalogDatasetFacet,
            "delta",
            "unitycatalog",
            table.location.partition(".")[0],
            metadataUri=f"https://{table.catalog_host}",
        )
    elif link := symlink_of(table):
        identifier = facets.symlinks_dataset.Identifier(*link, "TABLE")
        dataset_facets["symlinks"] = _made(facets.symlinks_dataset.SymlinksDatasetFacet, [identifier])
    return dataset_facets


def _column_origins(of: ColumnOrigins) -> Any:
    facet = facets.column_lineage_dataset
    columns = {column: facet.Fields(_fields(of, origins)) for column, origins in of.columns.items()}
    return _made(facet.ColumnLineageDatasetFacet, columns, _fields(of, of.rows))


def _made(facet: Any, *values: Any, **named: Any) -> Any:
    return facet(*values, **named, producer=PRODUCER)


def _fields(of: ColumnOrigins, origins: Iterable[Origin]) -> list[Any]:
    facet = facets.column_lineage_dataset
    fields: dict[tuple[str, str, str], list[Any]] = {}
    for origin in sorted(origins, key=lambda one: (one.topic, one.column, one.how, one.described)):
        kind = "DIRECT" if origin.is_direct else "INDIRECT"
        how = facet.Transformation(kind, origin.how, origin.described or None, masking=False)
        table = of.tables[origin.topic]
        column = table.renamed.get(origin.column, origin.column)
        fields.setdefault((*dataset_of(table), column), []).append(how)
    return [facet.InputField(*field, transformations=hows) for field, hows in fields.items()]
