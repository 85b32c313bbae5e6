"""Find and read the YAML files of a project. Errors name file, line, key and fix.

The files are small, and have no tags, aliases or templates.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

from rewindow.config.job import JobConfig, nested, overlapping
from rewindow.config.target import TargetConfig
from rewindow.config.yaml_text import Document, did_you_mean, mistakes_of, parse, position_of
from rewindow.errors import AccessError, ConfigError, check_utf8

if TYPE_CHECKING:
    from rewindow.config.feed import FeedConfig

Kind = Literal["feeds", "jobs", "targets"]
"""The folders of conf/ with configuration files."""
Model = TypeVar("Model", bound=BaseModel)
_Config = TypeVar("_Config", bound=BaseModel)
_MAX_BYTES = 1_000_000


def find_project(start: Path | None = None) -> Path:
    """Return the nearest folder with a ``conf/`` folder, from ``start`` (default: the working directory) upwards.

    Commands run the code of a project. A user who names the project's folder, or works in it, trusts it. But a project that was
    found only in a parent folder must belong to this user or to root. Raises `AccessError` (77) if it does not, and
    `ConfigError` (78) if there is no project.
    """
    begin = (Path.cwd() if start is None else start).resolve()
    check_utf8(str(begin), "folder", ConfigError)
    for folder in (begin, *begin.parents):
        if _is_there(folder / "conf", str(folder / "conf"), stat.S_ISDIR):
            if folder != begin:
                _check_owner(folder, begin)
            return folder
    raise ConfigError(
        "project-folder-missing",
        "no folder conf/ in {folder} or above it: change to the project's root, or use --project FOLDER",
        folder=str(begin),
    )


def why_not_trusted(path: Path) -> str:
    """Return why other users may have written a file or folder; ``""`` if it belongs to this user or to root."""
    trusted = {0, os.geteuid()}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        trusted.add(int(os.environ["SUDO_UID"]))
    facts = path.lstat()
    if not stat.S_ISLNK(facts.st_mode) and facts.st_mode & stat.S_IWOTH:
        return "is writable for everyone"
    return "" if facts.st_uid in trusted else f"belongs to the user {facts.st_uid}"


def _check_owner(root: Path, start: Path) -> None:
    for folder in (root, root / "conf"):
        if why := why_not_trusted(folder):
            raise AccessError(
                "project-not-trusted",
                "the project {root}, found above {start}, could run the code of others: {folder} {why}. If you trust it, name it "
                "with --project {root}",
                root=root,
                start=start,
                folder=folder,
                why=why,
            )


def load_feed(root: Path, name: str) -> FeedConfig:
    """Return ``conf/feeds/<name>.yaml``.

    Raises `ConfigError` (78) if it is missing or invalid, or if the feed reads an output that is made from this feed.
    """
    feed = _load_feed(root, name)
    feeding, jobs = feed, list[str]()
    while (job := feeding.producer) is not None and job not in jobs:
        jobs.append(job)
        try:
            feeding = _load_feed(root, load_job(root, job).feed)
        except (ConfigError, AccessError):
            # The commands on the job or feed of this invalid file report what is wrong with it.
            break
        if feeding.feed == name:
            with at(root, "feeds", name, "logs", next(iter(feed.logs)), "source", "job"):
                raise ConfigError(
                    "feed-reads-itself",
                    "the feed {feed} reads an output that is made from this feed (by {jobs}), so each landing would make more "
                    "rows to land: name another job",
                    feed=name,
                    jobs=" and ".join(jobs),
                )
    return feed


def _load_feed(root: Path, name: str) -> FeedConfig:
    from rewindow.config.feed import FeedConfig  # noqa: PLC0415 - most commands on a job do not read the feed's file

    return _load(root, "feeds", "feed", name, FeedConfig)


def load_job(root: Path, name: str) -> JobConfig:
    """Return ``conf/jobs/<name>.yaml``. Raises `ConfigError` (78) if it is missing or invalid."""
    return _load(root, "jobs", "job", name, JobConfig)


def load_target(root: Path, name: str = "local") -> TargetConfig:
    """Return ``conf/targets/<name>.yaml``. Raises `ConfigError` (78) if it is missing or invalid."""
    return _load(root, "targets", "target", name, TargetConfig)


def check_feed_exists(root: Path, config: JobConfig) -> None:
    """Raise `ConfigError` (78) if the job's feed has no file."""
    if config.feed not in stems(root, "feeds"):
        known = names_of(root, "feeds")
        with at(root, "jobs", config.job, "feed"):
            raise ConfigError(
                "job-feed-missing",
                "there is no feed {feed!r}: {hint}conf/feeds has {feeds}",
                feed=config.feed,
                hint=did_you_mean(config.feed, known),
                feeds=", ".join(known) or "none",
            )


def load_jobs(root: Path) -> dict[str, JobConfig]:
    """Return all jobs by name.

    Raises `ConfigError` (78) for an invalid file, and if tables of two jobs are equal or nested.
    """
    jobs = {name: load_job(root, name) for name in names_of(root, "jobs")}
    owners = [(output.table, name, topic) for name, job in jobs.items() for topic, output in job.outputs.items()]
    tables = [table for table, _, _ in owners]
    if problem := nested(tables):
        pair = overlapping(tables) or ("", "")
        (_, other, _), *_, (_, name, topic) = [owner for owner in owners if owner[0] in pair]
        with at(root, "jobs", name, "outputs", topic, "table"):
            raise ConfigError(
                "output-tables-overlap",
                "{reason}. The other output is in conf/jobs/{job}.yaml",
                reason=problem,
                job=other,
            )
    return jobs


def at(root: Path, kind: Kind, name: str, *keys: int | str) -> AbstractContextManager[None]:
    """Return a context that adds the file and line of a key to every `ConfigError` (78) raised in its block."""
    return _at_key(root / "conf" / kind / f"{name}.yaml", f"conf/{kind}/{name}.yaml", *keys)


def names_of(root: Path, kind: Kind) -> list[str]:
    """Return the sorted names of all feeds, jobs or targets. Raises `ConfigError` (78) for a file ending in .yml."""
    if misnamed := min(stems(root, kind, ".yml"), default=None):
        raise ConfigError(
            "config-file-misnamed",
            "conf/{folder}/{file}: configuration files end in .yaml: rename it to {name}.yaml",
            folder=kind,
            file=f"{misnamed}.yml",
            name=misnamed,
        )
    return stems(root, kind)


def location_of(root: Path, location: str) -> str:
    """Return a configured location as an absolute path or URI. Relative paths start at the project's root.

    A ``file://`` URI becomes a path.
    """
    path = location.removeprefix("file://")
    return path if "://" in path else str(root / path)


def read_model(path: Path, shown: str, model: type[Model]) -> Model:
    """Return the file as a validated model. ``shown`` is the file's name in messages.

    Raises `ConfigError` (78) with one line per mistake and the code of the first, and `AccessError` (77) if access to the file
    is denied.
    """
    return cast("Model", _read(_read_text(path, shown), shown, model))


def stems(root: Path, kind: Kind, ending: str = ".yaml") -> list[str]:
    """Return the sorted names of the files of a kind, without their ending; empty if there is no folder.

    Raises `AccessError` (77) if the folder cannot be listed.
    """
    try:
        names = [path.name for path in (root / "conf" / kind).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise _not_permitted(f"conf/{kind}", error) from error
    return sorted(name.removesuffix(ending) for name in names if name.endswith(ending) and name != ending)


def _is_there(path: Path, shown: str, is_kind: Callable[[int], bool] | None = None) -> bool:
    """Return whether a path exists, with ``is_kind`` only if it is of this kind.

    Raises `AccessError` (77) if access is denied.
    """
    try:
        return is_kind(path.stat().st_mode) if is_kind else bool(path.lstat())
    except PermissionError as error:
        raise _not_permitted(shown, error) from error
    except (OSError, ValueError):
        return False


def _not_permitted(shown: str, error: OSError) -> AccessError:
    return AccessError(
        "config-file-not-permitted", "no permission to read {file}: {reason}", file=shown, reason=error.strerror
    )


def _load(root: Path, folder: Kind, kind: str, name: str, model: type[_Config]) -> _Config:
    path = root / "conf" / folder / f"{name}.yaml"
    # Without this check, a name such as `../jobs/orders` would lead to a file in another folder.
    if path.parent != root / "conf" / folder or not _is_there(path, f"conf/{folder}/{name}.yaml"):
        names_of(root, folder)
        known = stems(root, folder)
        available = f"{did_you_mean(name, known)}available: {', '.join(known)}" if known else "create it first"
        if kind != "target" and name in names_of(root, "jobs" if kind == "feed" else "feeds"):
            other = f"a job: `rewindow run {name}`" if kind == "feed" else f"a feed: `rewindow land {name}`"
            available = f"{available}. {name} is {other}"
        raise ConfigError(
            "config-file-missing",
            "no conf/{folder}/{name}.yaml in {root}: {fix}",
            folder=folder,
            name=name,
            root=str(root),
            fix=available,
        )
    shown = f"conf/{folder}/{name}.yaml"
    _check_inside(root, path, shown)
    loaded = read_model(path, shown, model)
    stated = getattr(loaded, kind)
    if stated != name:
        with at(root, folder, name, kind):
            raise ConfigError(
                "config-name-differs",
                "{key} is {given!r}, but must equal the file's name: rename one of them",
                key=kind,
                given=stated,
            )
    return loaded


def _check_inside(root: Path, path: Path, shown: str) -> None:
    """Raise `ConfigError` (78) for a link to a file outside of the project, because messages would quote that file.

    ``conf/`` itself may be a link.
    """
    target = path.resolve()
    if not any(target.is_relative_to(folder.resolve()) for folder in (root, root / "conf")):
        raise ConfigError(
            "config-file-outside-project",
            "{file} is a link to a file outside the project: put the file itself there",
            file=shown,
        )


@lru_cache(maxsize=1024)
def _read(text: str, shown: str, model: type[BaseModel]) -> BaseModel:
    """Return a text as a model.

    Results are cached, because a run reads its job's file several times, and each time takes milliseconds.
    """
    document = parse(text, shown)
    mistakes, read = list(document.mistakes), None
    try:
        read = model.model_validate(document.values)
    except ValidationError as error:
        templates = {found.position.line for found in mistakes}
        mistakes += [one for one in mistakes_of(error, model, document) if one.position.line not in templates]
    if mistakes or read is None:
        # The mistakes are sorted by line, because people correct a file from top to bottom.
        mistakes.sort(key=lambda mistake: mistake.position.line)
        first = mistakes[0]
        raise first.error.surrounded(
            f"{shown}, {first.position}: ",
            "".join(f"\n{shown}, {one.position}: {one.error}" for one in mistakes[1:]),
        )
    return read


def _read_text(path: Path, shown: str) -> str:
    """Return the text of a configuration file. Raises `ConfigError` (78) unless it is small, regular and in UTF-8."""
    try:
        facts = path.stat()
        # Only regular files are read, because reading a pipe might never end.
        if not stat.S_ISREG(facts.st_mode):
            raise ConfigError(
                "config-file-not-regular", "{file} is not a regular file: replace it with one", file=shown
            )
        if facts.st_size > _MAX_BYTES:
            raise ConfigError(
                "config-file-too-large",
                "{file} is larger than {limit:,} bytes, the most that a configuration file has: split it",
                file=shown,
                limit=_MAX_BYTES,
            )
        data = path.read_bytes()
    except PermissionError as error:
        raise _not_permitted(shown, error) from error
    except OSError as error:
        raise ConfigError(
            "config-file-unreadable", "cannot read {file}: {reason}", file=shown, reason=error.strerror
        ) from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            "config-file-not-utf8",
            "{file}, line {line}: this is not UTF-8 (byte {byte}): save it as UTF-8",
            file=shown,
            line=line,
            byte=error.start,
        ) from error


@contextmanager
def _at_key(path: Path, shown: str, *keys: int | str) -> Iterator[None]:
    """Add the file and the line of a key to every `ConfigError` (78) that is raised in this block."""
    try:
        yield
    except ConfigError as error:
        error.surrounded(f"{shown}{_line(path, shown, keys)}: ")
        raise


def _line(path: Path, shown: str, keys: Sequence[int | str]) -> str:
    try:
        document: Document = parse(_read_text(path, shown), shown)
    except (ConfigError, AccessError):
        # The file has changed since it was read, so the line is not known.
        return ""
    return f", {position_of(document.root, keys)}"
