"""Read one YAML file into a model: small, without tags, aliases or templates. Errors name file, line, key and fix."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError

from rewindow.config.mistakes import mistakes_of
from rewindow.config.yaml_text import Document, parse, position_of
from rewindow.errors import AccessError, ConfigError

MAX_BYTES = 1_000_000

Model = TypeVar("Model", bound=BaseModel)


def read_model(path: Path, shown: str, model: type[Model]) -> Model:
    """Return the file as a validated model. ``shown`` is the file's name in messages.

    Raises `ConfigError` (78) with one line per mistake, and `AccessError` (77) if access to the file is denied.
    """
    return cast("Model", _read(read_text(path, shown), shown, model))


@lru_cache(maxsize=1024)
def _read(text: str, shown: str, model: type[BaseModel]) -> BaseModel:
    """Return a text as a model. A run asks for its job's file several times, and reading YAML takes milliseconds."""
    document = parse(text, shown)
    mistakes, read = list(document.mistakes), None
    try:
        read = model.model_validate(document.values)
    except ValidationError as error:
        templates = {found.position.line for found in mistakes}
        mistakes += [one for one in mistakes_of(error, model, document) if one.position.line not in templates]
    if mistakes or read is None:
        # Sorted by position: a reader corrects the file from top to bottom.
        raise ConfigError(
            "\n".join(mistake.told(shown) for mistake in sorted(mistakes, key=lambda one: one.position.line))
        )
    return read


def read_text(path: Path, shown: str) -> str:
    """Return the text of a configuration file. Raises `ConfigError` (78) unless it is small, regular and in UTF-8."""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):  # reading a pipe would never end
            raise ConfigError(f"{shown} is not a regular file: replace it with one")
        if facts.st_size > MAX_BYTES:
            raise ConfigError(f"{shown} is larger than {MAX_BYTES:,} bytes: is this the right file?")
        data = path.read_bytes()
    except PermissionError as error:
        raise AccessError(f"no permission to read {shown}: {error.strerror}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {shown}: {error.strerror}") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown}, line {line}: this is not UTF-8 (byte {error.start}): save it as UTF-8") from error


@contextmanager
def at_key(path: Path, shown: str, *keys: int | str) -> Iterator[None]:
    """Name file and line in every `ConfigError` (78) that is raised within: the place of a key of the file."""
    try:
        yield
    except ConfigError as error:
        error.args = (f"{shown}{_line(path, shown, keys)}: {error.message}",)
        raise


def _line(path: Path, shown: str, keys: Sequence[int | str]) -> str:
    try:
        document: Document = parse(read_text(path, shown), shown)
    except (ConfigError, AccessError):  # the file has changed since it was read
        return ""
    return f", {position_of(document.root, keys)}"
