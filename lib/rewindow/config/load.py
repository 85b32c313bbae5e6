"""Load a project's feeds, jobs and targets from ``conf/feeds/<feed>.yaml``, ``conf/jobs`` and ``conf/targets``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel

from rewindow.config.feed import FeedConfig
from rewindow.config.files import read_model
from rewindow.config.job import JobConfig, nested
from rewindow.config.target import TargetConfig
from rewindow.errors import ConfigError

_Config = TypeVar("_Config", bound=BaseModel)


def find_project(start: Path | None = None) -> Path:
    """Return the nearest folder with a ``conf/`` folder, from ``start`` (default: the working directory) upwards.

    Raises `ConfigError` (78) if there is none.
    """
    begin = (Path.cwd() if start is None else start).resolve()
    for folder in (begin, *begin.parents):
        if (folder / "conf").is_dir():
            return folder
    raise ConfigError(f"no folder conf/ in {begin} or above it: change to the project's root, or use --project FOLDER")


def load_feed(root: Path, name: str) -> FeedConfig:
    """Return ``conf/feeds/<name>.yaml``. Raises `ConfigError` (78) if it is missing or invalid."""
    return _load(root, "feeds", "feed", name, FeedConfig)


def load_job(root: Path, name: str) -> JobConfig:
    """Return ``conf/jobs/<name>.yaml``. Raises `ConfigError` (78) if it is missing or invalid."""
    return _load(root, "jobs", "job", name, JobConfig)


def load_target(root: Path, name: str = "local") -> TargetConfig:
    """Return ``conf/targets/<name>.yaml``. Raises `ConfigError` (78) if it is missing or invalid."""
    return _load(root, "targets", "target", name, TargetConfig)


def load_jobs(root: Path) -> dict[str, JobConfig]:
    """Return all jobs by name. Raises `ConfigError` (78) also if the tables of two jobs are equal or nested."""
    jobs = {name: load_job(root, name) for name in names_of(root, "jobs")}
    problem = nested([output.table for job in jobs.values() for output in job.outputs.values()])
    if problem:
        raise ConfigError(f"conf/jobs: {problem}")
    return jobs


def names_of(root: Path, kind: Literal["feeds", "jobs", "targets"]) -> list[str]:
    """Return the sorted names of all feeds, jobs or targets. Raises `ConfigError` (78) for a file ending in .yml."""
    folder = root / "conf" / kind
    if misnamed := min(folder.glob("*.yml"), default=None):
        raise ConfigError(
            f"conf/{kind}/{misnamed.name}: configuration files end in .yaml: rename it to {misnamed.stem}.yaml"
        )
    return sorted(path.stem for path in folder.glob("*.yaml"))


def location_of(root: Path, location: str) -> str:
    """Return a configured location as an absolute path or URI. Relative paths start at the project's root."""
    return location if "://" in location else str(root / location)


def _load(
    root: Path, folder: Literal["feeds", "jobs", "targets"], kind: str, name: str, model: type[_Config]
) -> _Config:
    known = names_of(root, folder)
    if name not in known:  # so that a name cannot point to another file
        available = f"available: {', '.join(known)}" if known else "create it first"
        if kind != "target" and name in names_of(root, "jobs" if kind == "feed" else "feeds"):
            other = f"a job: `rewindow run {name}`" if kind == "feed" else f"a feed: `rewindow land {name}`"
            available = f"{available}. {name} is {other}"
        raise ConfigError(f"no conf/{folder}/{name}.yaml in {root}: {available}")
    shown = f"conf/{folder}/{name}.yaml"
    path = root / "conf" / folder / f"{name}.yaml"
    _check_inside(root, path, shown)
    loaded = read_model(path, shown, model)
    stated = getattr(loaded, kind)
    if stated != name:
        raise ConfigError(f"{shown}: {kind} is {stated!r}, but must equal the file's name: rename one of them")
    return loaded


def _check_inside(root: Path, path: Path, shown: str) -> None:
    """Raise `ConfigError` (78) for a link out of the project, whose target messages would quote. conf/ may be a link."""
    target = path.resolve()
    if not any(target.is_relative_to(folder.resolve()) for folder in (root, root / "conf")):
        raise ConfigError(f"{shown} is a link to a file outside the project: put the file itself there")
