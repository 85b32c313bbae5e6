"""The bundle as it is written, and the jobs that each of its targets deploys."""

from __future__ import annotations

import copy
import json
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

from tests.conftest import ROOT

BUNDLE = ROOT / "conf" / "databricks" / "databricks.yml"
LISTS = {
    "tasks": "task_key",
    "job_clusters": "job_cluster_key",
    "environments": "environment_key",
    "parameters": "name",
}
"""Lists that the CLI merges by a key. It appends the items of other lists."""

Raw = dict[str, Any]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Variable(Part):
    description: str
    default: str | None = None


class Artifact(Part):
    type: Literal["whl"]
    path: str
    build: str
    dynamic_version: bool


class Identity(Part):
    user_name: str | None = None
    service_principal_name: str | None = None
    group_name: str | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Identity:
        assert sum(value is not None for value in (self.user_name, self.service_principal_name, self.group_name)) == 1
        return self


class Permission(Identity):
    level: Literal["CAN_MANAGE", "CAN_VIEW", "CAN_RUN"]


class Resources(Part):
    jobs: dict[str, Raw]
    """The parts of jobs, as they are written; `deployed` puts them together."""


class Target(Part):
    default: bool = False
    mode: Literal["production"]
    workspace: dict[Literal["root_path"], str]
    resources: Resources


class Bundle(Part):
    bundle: dict[Literal["name"], str]
    variables: dict[str, Variable]
    artifacts: dict[str, Artifact]
    sync: dict[Literal["paths"], list[str]]
    run_as: Identity
    permissions: list[Permission]
    resources: Resources
    targets: dict[str, Target]


def raw() -> Raw:
    """Return the bundle as it is written, without shared parts."""
    return copy.deepcopy(json.loads(json.dumps(yaml.safe_load(BUNDLE.read_text()))))


def deployed(bundle: Bundle, target: str) -> dict[str, Raw]:
    """Return the jobs that `databricks bundle deploy -t TARGET` deploys: the target's, merged into the bundle's."""
    ours = {name: dict(job) for name, job in bundle.resources.jobs.items()}
    for name, more in bundle.targets[target].resources.jobs.items():
        ours[name] = merged(ours.get(name, {}), more)
    return ours


def merged(job: Raw, more: Raw) -> Raw:
    """Merge two parts of a job as the CLI does: some lists by their key."""
    result = dict(job)
    for name, value in more.items():
        if name in job:
            assert name in LISTS, f"{name}: one place for each setting"
            by_key: dict[str, Raw] = {}
            for item in (*job[name], *value):
                by_key[item[LISTS[name]]] = {**by_key.get(item[LISTS[name]], {}), **item}
            result[name] = list(by_key.values())
        else:
            result[name] = value
    return result


def jobs(bundle: Bundle) -> list[Raw]:
    return [job for target in bundle.targets for job in deployed(bundle, target).values()]


def tasks(bundle: Bundle) -> list[Raw]:
    return [task for job in jobs(bundle) for task in job["tasks"]]
