"""From a project's files to its feeds, jobs and targets: ``conf/feeds/<feed>.yaml`` and so on."""

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
    """Return the folder that holds ``conf/``: ``start`` (default: the working directory) or the nearest above it.

    Raises `ConfigError` if there is none.
    """
    begin = (Path.cwd() if start is None else start).resolve()
    for folder in (begin, *begin.parents):
        if (folder / "conf").is_dir():
            return folder
    raise ConfigError(f"no folder conf/ in {begin} or above it: go to the project's root (it holds conf/ and jobs/)")


def load_feed(root: Path, name: str) -> FeedConfig:
    """Return ``conf/feeds/<name>.yaml``. Raises `ConfigError` (78) that names file, key and fix."""
    return _load(root, "feeds", "feed", name, FeedConfig)


def load_job(root: Path, name: str) -> JobConfig:
    """Return ``conf/jobs/<name>.yaml``. Raises `ConfigError` (78) that names file, key and fix."""
    return _load(root, "jobs", "job", name, JobConfig)


def load_target(root: Path, name: str = "local") -> TargetConfig:
    """Return ``conf/targets/<name>.yaml``. Raises `ConfigError` (78) that names file, key and fix."""
    return _load(root, "targets", "target", name, TargetConfig)


def load_jobs(root: Path) -> dict[str, JobConfig]:
    """Return all jobs by name. Raises `ConfigError` too if two of them write one table, or one inside another's."""
    jobs = {name: load_job(root, name) for name in names_of(root, "jobs")}
    problem = nested([output.table for job in jobs.values() for output in job.outputs.values()])
    if problem:
        raise ConfigError(f"conf/jobs: {problem}")
    return jobs


def names_of(root: Path, kind: Literal["feeds", "jobs", "targets"]) -> list[str]:
    """Return the names of all feeds, jobs or targets, sorted. Raises `ConfigError` for a file that nobody would read."""
    folder = root / "conf" / kind
    if misnamed := min(folder.glob("*.yml"), default=None):
        raise ConfigError(f"conf/{kind}/{misnamed.name}: files here end in .yaml, call it {misnamed.stem}.yaml")
    return sorted(path.stem for path in folder.glob("*.yaml"))


def location_of(root: Path, place: str) -> str:
    """Return a place from the configuration as an absolute path or URI; what is relative starts at the root."""
    return place if "://" in place else str(root / place)


def _load(
    root: Path, folder: Literal["feeds", "jobs", "targets"], kind: str, name: str, model: type[_Config]
) -> _Config:
    known = names_of(root, folder)
    if name not in known:  # so a name can reach no other file
        there = f"there are {', '.join(known)}" if known else "there is none yet"
        raise ConfigError(f"no conf/{folder}/{name}.yaml in {root}: {there}")
    shown = f"conf/{folder}/{name}.yaml"
    loaded = read_model(root / "conf" / folder / f"{name}.yaml", shown, model)
    stated = getattr(loaded, kind)
    if stated != name:
        raise ConfigError(f"{shown}: {kind} is {stated!r}: a file is called as its {kind}, rename one of them")
    return loaded
