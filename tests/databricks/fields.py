"""Check a bundle's resource field by field against the dataclasses of `databricks-sdk` (Apache License 2.0).

The SDK is generated from the same specification of the API as the bundle's schema. The published schema itself (in the
repository of the Databricks CLI) is under Databricks' own licence and is not copied here.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterator
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from databricks.sdk.service.jobs import JobSettings

NOT_IN_BUNDLES = {"deployment", "edit_mode", "format", "environment_variables"}
"""Fields of the API's job that the bundle sets itself or does not have: the published schema omits them."""
ONLY_IN_BUNDLES = {"permissions", "lifecycle"}


def faults_of_job(job: dict[str, Any]) -> list[str]:
    """Return what is wrong with a deployed job."""
    api = {name: value for name, value in job.items() if name not in ONLY_IN_BUNDLES}
    foreign = [f"{name}: not a field of a bundle's job" for name in api if name in NOT_IN_BUNDLES]
    return foreign + list(faults(api, JobSettings))


def faults(value: Any, kind: Any, at: str = "") -> Iterator[str]:
    """Yield an unknown field, a missing one, and a value of the wrong type, each with its path."""
    if isinstance(value, str) and value.startswith("${"):
        return  # a variable, whose value is not known here
    if get_origin(kind) in (Union, types.UnionType):
        (inner,) = (one for one in get_args(kind) if one is not type(None))
        yield from faults(value, inner, at)
    elif get_origin(kind) is list:
        if not isinstance(value, list):
            yield f"{at}: not a list"
            return
        for number, one in enumerate(value):
            yield from faults(one, get_args(kind)[0], f"{at}[{number}]")
    elif get_origin(kind) is dict:
        if not isinstance(value, dict):
            yield f"{at}: not a mapping"
            return
        for name, one in value.items():
            yield from faults(one, get_args(kind)[1], f"{at}.{name}")
    elif dataclasses.is_dataclass(kind):
        yield from _faults_of_fields(value, kind, at)
    elif issubclass(kind, Enum):
        if value not in {one.value for one in kind}:
            yield f"{at}: {value!r} is none of {', '.join(one.value for one in kind)}"
    elif type(value) is not kind:
        yield f"{at}: {value!r} is not of type {kind.__name__}"


def _faults_of_fields(value: Any, kind: Any, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at}: not a mapping"
        return
    names = vars(sys.modules[kind.__module__])
    types_of = get_type_hints(kind, names, names)  # not the class's own: its field `compute` hides the module
    for field in dataclasses.fields(kind):
        if (
            field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
            and field.name not in value
        ):
            yield f"{at}.{field.name}: missing"
    for name, one in value.items():
        path = f"{at}.{name}".lstrip(".")
        if name in types_of:
            yield from faults(one, types_of[name], path)
        else:
            yield f"{path}: not a field of {kind.__name__}"
