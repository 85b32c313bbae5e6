"""The lines about a command's result in a task's log, and the extra of asset events. Does not import Airflow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rewindow.contracts.instants import instant

TABLE: Final = "table"
"""The key in an asset's extra for the name of the asset's table, as in the job's file."""
FEED: Final = "feed"
"""The key in an asset's extra for the name of the asset's feed."""
_OUTPUT = "output/"
"""The beginning of the names of targets that are output tables."""
_COMPARED = {"equal", "different", "only_first", "only_second"}
"""The counts in the result of `diff` for each output."""


def lines_of(result: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Yield the lines that describe the ``--json`` output of a command; nothing for the output of other commands.

    ``where``: the options with which a command on this worker finds the project.
    """
    if result.get("landed"):
        yield from _landed(result["landed"])
    if "landings" in result:
        yield from _landed(result)
    for run in (*result.get("taken_over", ()), *result.get("runs", ())):
        yield from _ran(run)
    if "reason" in result or result.get("epochs"):
        yield from _ran(result)
    if result.get("runs") and result.get("job"):
        yield _report(result["job"], f"--branch {result['branch']} --diff main", where)
    summary = result.get("summary") or {}
    if summary.get("job"):
        yield f"It took {summary.get('seconds', 0):.1f} seconds and {summary.get('commits', 0)} commits"
        yield _report(summary["job"], f"--branch {summary.get('branch')} --run {summary.get('run')}", where)
    if "into" in result:
        done = "promoted to" if result.get("is_new") else "is already part of"
        yield f"Branch {result['branch']}: {done} {result['into']}, which is at {result['at']}"
    if isinstance(result.get("dropped"), str):  # in results of `run`, "dropped" is a mapping of counts
        yield f"Branch {result['dropped']} is dropped. `rewindow gc` deletes its tables once they are old enough"
    for name, one in result.items():
        if isinstance(one, Mapping) and "deleted" in one:
            yield _collected(name, one["deleted"])
    for table in result.get("published", ()):
        yield f"{table['table']}: version {table.get('version')}, {table.get('rows')} rows added by run {table.get('run')}"


def is_result(command: str, result: Mapping[str, Any]) -> bool:
    """Return whether the JSON that a command printed is its result.

    The exit code 1 of `diff` means that it found a difference. But a Python without rewindow also exits with 1. Only `diff`
    prints counts.
    """
    if command != "diff":
        return bool(result)
    return bool(result) and all(isinstance(one, Mapping) and one.keys() >= _COMPARED for one in result.values())


def reason_of(result: Mapping[str, Any]) -> str:
    """Return why the command failed, from its JSON: its error, or why the first run on hold is not published.

    Returns ``""`` if the JSON has neither.
    """
    held = next(iter(result.get("on_hold") or ()), None)
    if result.get("error") or held is None:
        return str(result.get("error", ""))
    return (
        f"Run {held['run']} is on hold, so its rows are not published: {'; '.join(held['unmet'])}. Publish it: "
        f"`{held['accept']}`. Or remove it: `{held['remove']}`."
    )


def did_nothing(result: Mapping[str, Any]) -> bool:
    """Return whether a command certainly found nothing to do. False if the command's result does not show it.

    The ``--json`` output of `run` has ``published`` and ``run``. `promote` has ``published`` and ``is_new``, `publish` has
    ``published`` and ``accepted``, and `land` has ``landings``.
    """
    if "published" in result:
        return not any(result.get(name) for name in ("run", "is_new", "lagged", "taken_over", "accepted"))
    return "landings" in result and not result["landings"] and not result.get("was_interrupted")


def has_event(asset: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Return whether a command changed the table or feed of an asset, so that the asset gets an event. ``asset``: its extra.

    The asset of a feed gets an event after each landing, including one by `run --land`. The asset of a table gets an event if
    the command did something and no run is on hold. Readers do not see the rows of a run on hold.
    """
    if FEED not in asset:
        return not did_nothing(result) and not result.get("on_hold")
    landed = result.get("landed") or result
    return landed.get(FEED) == asset[FEED] and bool(landed.get("landings") or landed.get("was_interrupted"))


def told_of(asset: Mapping[str, Any], name: str, result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a command printed about the table or feed of an asset; None if it printed nothing about it.

    ``asset`` is the asset's extra, ``name`` the asset's name.
    """
    if FEED not in asset:
        return extra_of(str(asset.get(TABLE, name)), [result])
    landed = result.get("landed") or result
    if landed.get(FEED) != asset[FEED] or "landings" not in landed:
        return None
    return {key: landed.get(key) for key in (FEED, "landings", "rows", "quarantined", "watermark_ms")}


def extra_of(table: str, results: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what `run` or `promote` printed about a table; None if they printed nothing about it.

    ``results`` are the ``--json`` outputs of commands. In them, the name of a table in a catalog has three parts. In the job's
    file, it may have two, because the target names the catalog.
    """
    found = [(str(one["table"]).replace("/", "."), one, result) for result in results for one in _tables(result)]
    matches = [one for one in found if one[0] == table] or [one for one in found if one[0].endswith(f".{table}")]
    if len({name for name, _, _ in matches}) != 1:
        return None
    _, printed, result = matches[-1]
    return {**printed, "epochs": result.get("epochs"), "is_new": not did_nothing(result)}


def _landed(report: Mapping[str, Any]) -> Iterator[str]:
    landings = report.get("landings") or ()
    if not landings:
        yield f"Feed {report.get('feed')}: {report.get('waiting') or 'nothing new to land'}"
    else:
        through = instant(report.get("watermark_ms"), "no time yet")
        yield (
            f"Feed {report.get('feed')}: landings {landings[0]} to {landings[-1]}, {report.get('rows', 0)} records landed, "
            f"{report.get('behind', 0)} after their interval, {report.get('quarantined', 0)} quarantined, "
            f"complete through {through}"
        )
    for warning in report.get("warnings", ()):
        yield f"warning: {warning}"


def _ran(run: Mapping[str, Any]) -> Iterator[str]:
    if run.get("run") is None:
        yield f"Nothing to run: {run.get('reason')}"
        if changed := run.get("changed"):
            yield f"The job has changed since its checkpoint, and its next run accepts: {'; '.join(changed)}"
        return
    epochs = run.get("epochs") or ("?", "?")
    taken = ", ".join(f"{count} of {topic}" for topic, count in (run.get("consumed") or {}).items()) or "no records"
    yield f"Run {run['run']}: epochs {epochs[0]} to {epochs[1]}, {taken}"
    targets = {name.removeprefix(_OUTPUT): n for name, n in run.get("targets", {}).items() if name.startswith(_OUTPUT)}
    rows = ", ".join(f"{count} to {topic}" for topic, count in targets.items()) or "none"
    counts = {"late": 0, "quarantined": 0} | {
        kind: sum(reasons.values()) for kind, reasons in run.get("dropped", {}).items()
    }
    yield f"Rows: {rows}. Records: {', '.join(f'{count} {kind}' for kind, count in counts.items())}"


def _collected(name: str, files: Sequence[Mapping[str, Any]]) -> str:
    """Return a line about the files of a job or feed that `gc` deleted, or would delete."""
    return f"{name}: {len(files)} files that nothing needs, {sum(file['bytes'] for file in files):,} bytes"


def _report(job: str, options: str, where: str) -> str:
    return f"Report: `{' '.join(filter(None, (f'rewindow report {job}', options, where)))}`"


def _tables(result: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    published: Iterable[Mapping[str, Any]] = result.get("published", ())
    return published
