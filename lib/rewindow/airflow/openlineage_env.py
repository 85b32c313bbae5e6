"""The variables with which a task's command tells OpenLineage what Airflow's provider would. Does not import Airflow.

The command sends its events itself. So the provider need not be installed, and its listener need not know rewindow.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

_OPTIONS: Final = {
    "transport": "OPENLINEAGE__TRANSPORT",
    "config_path": "OPENLINEAGE_CONFIG",
    "namespace": "OPENLINEAGE_NAMESPACE",
}
"""Options in the section ``[openlineage]`` of Airflow's configuration, and the client's variables for them."""
_TRUE: Final = frozenset(("true", "t", "1"))


def openlineage_env(ti: Any, option: Callable[[str], str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for the command of a task instance.

    ``option`` returns an option of the section ``[openlineage]``, or an empty text. The client's own variables, which the
    command inherits, hold for what the section does not set.
    """
    given = {variable: value for name, variable in _OPTIONS.items() if (value := option(name))}
    if option("disabled").strip().lower() in _TRUE:
        given["OPENLINEAGE_DISABLED"] = "true"
    if ti is None:
        return given
    namespace = given.get("OPENLINEAGE_NAMESPACE") or environ.get("OPENLINEAGE_NAMESPACE") or "default"
    task, dag = _ids(ti, namespace)
    return {**given, "OPENLINEAGE_PARENT_ID": task, "OPENLINEAGE_ROOT_PARENT_ID": dag}


def _ids(ti: Any, namespace: str) -> tuple[str, str]:
    """Return the ids of the task's and the DAG's run as ``namespace/job/UUID``: the provider's if it is installed."""
    with suppress(Exception):  # it may be absent, or of a version that takes other arguments
        from airflow.providers.openlineage.plugins import macros  # noqa: PLC0415 - another provider, which may be absent

        return macros.lineage_parent_id(ti), macros.lineage_root_parent_id(ti)
    run = f"{namespace}/{ti.dag_id}/{ti.run_id}"
    task = f"{run}/{ti.task_id}/{getattr(ti, 'map_index', -1)}/{ti.try_number}"
    names = ((f"{ti.dag_id}.{ti.task_id}", task), (str(ti.dag_id), run))
    found = [f"{namespace}/{job}/{uuid.uuid5(uuid.NAMESPACE_URL, text)}" for job, text in names]
    return found[0], found[1]
