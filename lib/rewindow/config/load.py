"""Load a project's feeds, jobs and targets from ``conf/feeds/<feed>.yaml``, ``conf/jobs`` and ``conf/targets``."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel

from rewindow.config.feed import FeedConfig
from rewindow.config.files import at_key, read_model
from rewindow.config.job import JobConfig, nested, overlapping
from rewindow.config.mistakes import did_you_mean
from rewindow.config.target import TargetConfig
from rewindow.errors import ConfigError

Kind = Literal["feeds", "jobs", "targets"]
"""The folders of conf/ with configuration files."""
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


def check_feed_exists(root: Path, config: JobConfig) -> None:
    """Raise `ConfigError` (78) if the job's feed has no file."""
    if config.feed not in _stems(root, "feeds"):
        known = names_of(root, "feeds")
        with at(root, "jobs", config.job, "feed"):
            hint = did_you_mean(config.feed, known)
            raise ConfigError(f"there is no feed {config.feed!r}: {hint}conf/feeds has {', '.join(known) or 'none'}")


def load_jobs(root: Path) -> dict[str, JobConfig]:
    """Return all jobs by name. Raises `ConfigError` (78) also if the tables of two jobs are equal or nested."""
    jobs = {name: load_job(root, name) for name in names_of(root, "jobs")}
    owners = [(output.table, name, topic) for name, job in jobs.items() for topic, output in job.outputs.items()]
    tables = [table for table, _, _ in owners]
    if problem := nested(tables):
        pair = overlapping(tables) or ("", "")
        (_, other, _), *_, (_, name, topic) = [owner for owner in owners if owner[0] in pair]
        with at(root, "jobs", name, "outputs", topic, "table"):
            raise ConfigError(f"{problem}. The other output is in conf/jobs/{other}.yaml")
    return jobs


def at(root: Path, kind: Kind, name: str, *keys: int | str) -> AbstractContextManager[None]:
    """Return a context that adds file and line of a key to every `ConfigError` (78) raised in it."""
    return at_key(root / "conf" / kind / f"{name}.yaml", f"conf/{kind}/{name}.yaml", *keys)


def names_of(root: Path, kind: Kind) -> list[str]:
    """Return the sorted names of all feeds, jobs or targets. Raises `ConfigError` (78) for a file ending in .yml."""
    folder = root / "conf" / kind
    if misnamed := min(folder.glob("*.yml"), default=None):
        raise ConfigError(
            f"conf/{kind}/{misnamed.name}: configuration files end in .yaml: rename it to {misnamed.stem}.yaml"
        )
    return _stems(root, kind)


def _stems(root: Path, kind: Kind) -> list[str]:
    return sorted(path.stem for path in (root / "conf" / kind).glob("*.yaml"))


def location_of(root: Path, location: str) -> str:
    """Return a configured location as an absolute path or URI. Relative paths start at the project's root."""
    return location if "://" in location else str(root / location)


def _load(root: Path, folder: Kind, kind: str, name: str, model: type[_Config]) -> _Config:
    path = root / "conf" / folder / f"{name}.yaml"
    if path.parent != root / "conf" / folder or not os.path.lexists(path):  # a name cannot point to another folder
        names_of(root, folder)
        known = _stems(root, folder)
        available = f"{did_you_mean(name, known)}available: {', '.join(known)}" if known else "create it first"
        if kind != "target" and name in names_of(root, "jobs" if kind == "feed" else "feeds"):
            other = f"a job: `rewindow run {name}`" if kind == "feed" else f"a feed: `rewindow land {name}`"
            available = f"{available}. {name} is {other}"
        raise ConfigError(f"no conf/{folder}/{name}.yaml in {root}: {available}")
    shown = f"conf/{folder}/{name}.yaml"
    _check_inside(root, path, shown)
    loaded = read_model(path, shown, model)
    stated = getattr(loaded, kind)
    if stated != name:
        with at(root, folder, name, kind):
            raise ConfigError(f"{kind} is {stated!r}, but must equal the file's name: rename one of them")
    return loaded


def _check_inside(root: Path, path: Path, shown: str) -> None:
    """Raise `ConfigError` (78) for a link out of the project, whose target messages would quote. conf/ may be a link."""
    target = path.resolve()
    if not any(target.is_relative_to(folder.resolve()) for folder in (root, root / "conf")):
        raise ConfigError(f"{shown} is a link to a file outside the project: put the file itself there")
