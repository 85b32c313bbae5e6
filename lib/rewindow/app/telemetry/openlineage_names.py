"""The names of datasets and jobs, by the naming conventions of OpenLineage."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from rewindow.app.telemetry.command_facts import RUN, Operation, Table
from rewindow.control.plan.spec import MAIN
from rewindow.storage.locations import is_uri

NAMESPACE = "default"
"""The namespace of jobs if ``OPENLINEAGE_NAMESPACE`` is not set. Other integrations of OpenLineage have the same default."""
BRANCH_RUN = "branch-run"
"""The kind of a run on a branch other than main, which writes other tables than a run on main."""

PARENT, ROOT = "OPENLINEAGE_PARENT_ID", "OPENLINEAGE_ROOT_PARENT_ID"
"""The variables in which a scheduler names its run that started the command, and its outermost run."""

_SCHEMES = {"s3a": "s3", "gcs": "gs", "abfs": "abfss"}


class Named(NamedTuple):
    """A name within a namespace."""

    namespace: str
    name: str


class Caller(NamedTuple):
    """A run of a scheduler: the namespace and name of its job, and its UUID."""

    namespace: str
    job: str
    run: str


def caller_in(environ: Mapping[str, str], name: str) -> Caller | None:
    """Return the run that a variable names as ``namespace/job/UUID``; None if the variable has no such value."""
    namespace, _, rest = environ.get(name, "").strip().partition("/")
    job, _, run = rest.rpartition("/")
    try:
        return Caller(namespace, job, str(uuid.UUID(run))) if namespace and job else None
    except ValueError:
        return None


def dataset_of(table: Table) -> Named:
    """Return the dataset name of a table or of files. Its namespace is ``file``, a bucket or the host of a catalog."""
    if table.catalog_host is not None:
        return Named(f"unitycatalog://{table.catalog_host}", table.location)
    return _located(table.location)


def symlink_of(table: Table) -> Named | None:
    """Return the name that a table at a path has in its warehouse, such as ``shop.daily_orders``; None if it has no name."""
    if table.name is None or not table.warehouse:
        return None
    namespace, folder = _located(table.warehouse)
    where = f"{namespace}/{folder}" if "://" in namespace else f"file:{folder}"
    return Named(where.rstrip("/"), table.name)


def job_of(operation: Operation, environ: Mapping[str, str] = os.environ) -> Named:
    """Return the name of an operation's job, such as ``shop.daily_orders.run``."""
    kind = BRANCH_RUN if operation.kind == RUN and operation.branch not in {None, MAIN} else operation.kind
    namespace = environ.get("OPENLINEAGE_NAMESPACE") or NAMESPACE
    return Named(namespace, f"{operation.project}.{operation.subject}.{kind}")


def _located(location: str) -> Named:
    if not is_uri(location):
        return Named("file", location.rstrip("/") or "/")
    url = urlsplit(location)
    if url.scheme == "file":
        return Named("file", url.path.rstrip("/") or "/")
    scheme = _SCHEMES.get(url.scheme, url.scheme)
    # Object keys have no leading slash.
    return Named(f"{scheme}://{url.netloc}", url.path.strip("/") or "/")
