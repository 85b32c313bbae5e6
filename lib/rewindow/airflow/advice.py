"""Rewrite a command's error message for a DAG: options become params, and commands can be pasted into a worker's shell.

Messages suggest commands. The reader of a task's log has no command line at hand.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from rewindow.airflow.intervals import ACCEPT_CHANGES, REPLAN, TAKEOVER, THROUGH

BACKFILL: Final = "__backfill"
"""What the id of a job's backfill DAG ends with."""

MAINTENANCE: Final = "maintenance"
"""A tag of the DAG that drops branches and cleans up. It belongs to no single job, so it has no backfill DAG."""

_PARAMS: Final = {
    "--accept-changes": ACCEPT_CHANGES,
    "--through": THROUGH,
    "--replan": REPLAN,
    "--takeover": TAKEOVER,
    "--keep": "keep",
    "--dry-run": "dry_run",
}
"""The options that a DAG may have a param for."""
_RECOMPUTE: Final = re.compile(
    r"`rewindow backfill (?P<job>\S+) --from (?P<start>\S+) --branch NAME`"
    r"((, and publish it with|,) `rewindow promote (?P=job) NAME`)?"
)
_COMMAND: Final = re.compile(r"(`rewindow [^`]+)`")
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def in_a_dag(message: str, *, params: Collection[str], where: str = "", dag_id: str = "") -> str:
    """Return a message in the words of a DAG.

    Args:
        message: A command's error message.
        params: The DAG's params.
        where: The options of the task's commands, ``--project /opt/shop --target local``; empty if they run elsewhere.
        dag_id: The DAG's id if `make_dags` made it, so that there is a backfill DAG too; otherwise empty.
    """
    if dag_id:
        recomputing = dag_id.removesuffix(BACKFILL) + BACKFILL
        message = _RECOMPUTE.sub(
            rf"trigger the DAG {recomputing} with the param from=\g<start>, which asks before it publishes", message
        )
    parts = [_outside(part, params) if index % 2 == 0 else part for index, part in enumerate(_COMMAND.split(message))]
    told = "".join(_command(part, where) if index % 2 else part for index, part in enumerate(parts))
    bare = sorted({option for part in parts[::2] for option in _OPTION.findall(part)})
    if not bare:
        return told
    options = f" and {where}" if where else ""
    return f"{told}\nThis DAG has no param for {', '.join(bare)}: run the task's command on a worker with it{options}."


def _outside(text: str, params: Collection[str]) -> str:
    """Return the text between two commands, with the DAG's params instead of options."""
    for option, param in _PARAMS.items():
        if param in params:
            text = re.sub(rf"(?<![\w-]){option}\b", f"the DAG's param {param}", text)
    return text


def _command(command: str, where: str) -> str:
    return f"{command} {where}`" if where else f"{command}`"
