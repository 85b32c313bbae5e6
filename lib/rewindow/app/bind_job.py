"""Bind a job of a project to a feed: load its topology, and decide its stores and tables with their columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from rewindow.app.open_target import output_location
from rewindow.config.job import JobConfig, unwritten_output
from rewindow.config.load import at
from rewindow.config.target import TargetConfig
from rewindow.config.yaml_text import nearest
from rewindow.contracts.tasks import JobCode
from rewindow.control.code_version import reached_code
from rewindow.control.ingest.landings import Feed, log_shapes
from rewindow.control.plan.planned_tasks import TablePaths, bind_job
from rewindow.control.plan.zone_clocks import recorded
from rewindow.control.project_source import TopologyLoader
from rewindow.control.run import Job
from rewindow.errors import ConfigError
from rewindow.streams.error_policy import check_policies
from rewindow.streams.settings import Limits, Semantics, Settings
from rewindow.streams.topology import Topology
from rewindow.streams.zoned_topology import load_with_clocks, with_clocks, zones_of
from rewindow.tables.shared.paths import EXPECTATIONS, METRICS, QUARANTINE, changelog_path


def bind_to_feed(root: Path, target: TargetConfig, config: JobConfig, feed: Feed, branch: str) -> Job:
    """Return a job bound to a feed. Raises `ConfigError` (78) if the job's code and settings do not fit the feed's logs."""
    job = config.job
    loader = TopologyLoader(job, config.topology, str(root))
    semantics = Semantics(**config.semantics.model_dump())
    settings = Settings(config.on_error, limits_of(config, target), keeps_dropped=config.dropped == "quarantine")
    code = JobCode(loader, partial(log_shapes, dict(feed.definition.logs)), semantics, settings)
    topology, clocks = _topology(root, config, code), {}
    if zones := zones_of(topology):
        from rewindow.storage.zone_data import read_zones  # noqa: PLC0415 - few jobs have windows in local time

        with _fits(root, job):
            clocks = read_zones(zones)
        code = replace(code, load_topology=partial(load_with_clocks, loader, clocks))
        # The topology is built once. Without this, the new value would build it again.
        topology = vars(code)["topology"] = with_clocks(topology, clocks)
    with at(root, "jobs", job, "on_error") if config.on_error else _fits(root, job):
        quarantines = check_policies(topology, config.on_error) or settings.keeps_dropped
    paths = TablePaths(
        output=partial(_output, root, target, config, branch),
        changelog=partial(changelog_path, job),
        metrics=METRICS,
        quarantine=QUARANTINE if quarantines else None,
        expectations=EXPECTATIONS if any(output.expect for output in config.outputs.values()) else None,
    )
    with _fits(root, job):
        binding = bind_job(job, feed, topology, code.load_logs(), asdict(semantics), paths)
    reached = reached_code(topology, root)
    binding = replace(binding, code=reached.version, zones=recorded(clocks))
    if unwritten := unwritten_output(config, topology):
        topic, error = unwritten
        with at(root, "jobs", job, "outputs", topic):
            raise error
    expectations = None
    if paths.expectations:
        from rewindow.app.job_expectations import bound_expectations  # noqa: PLC0415 - it loads Arrow and delta-rs

        expectations = bound_expectations(root, config, binding, topology, code.load_logs())
    return Job(job, code, binding, feed, expectations, reached.unaligned_schedules)


@contextmanager
def _fits(root: Path, job: str) -> Iterator[None]:
    """Add the line at fault to errors about the topology.

    This is a line of the job's code or, if no such line is known, the line of ``topology:`` in the job's file.
    """
    try:
        yield
    except ConfigError as error:
        if error.message.startswith("conf/"):  # the error names a line of a file below conf/ already
            raise
        own, line = f"{root}/", error.line or ""
        if line.startswith(own):
            named = "" if error.message.startswith("job ") else f"job {job!r}: "
            error.surrounded(f"{line.removeprefix(own)}: {named}").line = None
            raise
        with at(root, "jobs", job, "topology"):
            raise


def limits_of(config: JobConfig, target: TargetConfig) -> Limits:
    """Return the limits of a job's tasks on a target."""
    limits = Limits(**config.limits.model_dump())
    if target.store_memory is None:
        return limits
    return replace(limits, store_memory=min(limits.store_memory, int(target.store_memory)))


def _topology(root: Path, config: JobConfig, code: JobCode) -> Topology:
    """Return the job's topology. If its module or function does not exist, the error names the line in the job's file."""
    try:
        return code.topology
    except ConfigError as error:
        module = config.topology.partition(":")[0]
        missing = getattr(error.__cause__, "name", None) if isinstance(error.__cause__, ModuleNotFoundError) else None
        is_named_wrongly = missing is not None and f"{module}.".startswith(f"{missing}.")
        if not is_named_wrongly and error.code != "topology-function-missing":
            with _fits(root, config.job):
                raise
        path = root.joinpath(*module.split("."))
        near = nearest(path.name, [file.stem for file in path.parent.glob("*.py")]) if is_named_wrongly else None
        with at(root, "jobs", config.job, "topology"):
            parent = module.rpartition(".")[0]
            error.surrounded(after=f". Did you mean `{parent and f'{parent}.'}{near}`?" if near else "")
            raise


def _output(root: Path, target: TargetConfig, config: JobConfig, branch: str, topic: str) -> str:
    with at(root, "jobs", config.job, "outputs"):
        return output_location(config, branch, target.catalog, topic)
