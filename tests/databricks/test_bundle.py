"""The bundle, checked without a workspace: its fields are known, their references exist, and nothing is misspelt.

The schema that the Databricks CLI prints may only be used with Databricks' services, so it is not stored here. The known
fields come from the documentation. If `databricks-bundles` is installed, it also parses the jobs.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field

from rewindow.app.wheel_task import TaskError, commands_of, main
from rewindow.config.load import load_feed, load_job, load_target
from rewindow.databricks.outcome import exit_code
from rewindow.errors import UsageError
from tests.conftest import ROOT, copy_project

BUNDLE = ROOT / "conf" / "databricks" / "databricks.yml"
REFERENCES = {"job.trigger.time.iso_datetime", "backfill.iso_datetime", "job.parameters.interval_end"}


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Parameter(Part):
    name: str
    default: str


class WheelTask(Part):
    package_name: str
    entry_point: str
    named_parameters: dict[str, str]


class Task(Part):
    task_key: str
    depends_on: list[dict[str, str]] = []
    python_wheel_task: WheelTask
    environment_key: str | None = None
    job_cluster_key: str | None = None
    libraries: list[dict[Literal["whl"], str]] = []
    max_retries: int = Field(0, ge=0)
    min_retry_interval_millis: int = 0
    retry_on_timeout: bool = False


class Schedule(Part):
    quartz_cron_expression: str = Field(pattern=r"^\S+( \S+){5,6}$")
    timezone_id: str
    pause_status: Literal["PAUSED", "UNPAUSED"]


class EnvironmentSpec(Part):
    environment_version: str
    dependencies: list[str]


class Environment(Part):
    environment_key: str
    spec: EnvironmentSpec


class NewCluster(Part):
    spark_version: str
    node_type_id: str
    num_workers: int
    data_security_mode: Literal["USER_ISOLATION", "SINGLE_USER"]


class JobCluster(Part):
    job_cluster_key: str
    new_cluster: NewCluster


class Job(Part):
    name: str
    max_concurrent_runs: Literal[1]
    queue: dict[Literal["enabled"], bool]
    schedule: Schedule
    parameters: list[Parameter]
    tasks: list[Task] = Field(min_length=1)
    environments: list[Environment] = []
    job_clusters: list[JobCluster] = []


class Resources(Part):
    jobs: dict[str, Job]


class Target(Part):
    default: bool = False
    mode: Literal["development", "production"]
    workspace: dict[Literal["root_path", "host", "profile"], str]
    resources: Resources | None = None


class Artifact(Part):
    type: Literal["whl"]
    path: str
    build: str


class Bundle(Part):
    bundle: dict[Literal["name"], str]
    artifacts: dict[str, Artifact]
    sync: dict[Literal["paths"], list[str]]
    resources: Resources
    targets: dict[str, Target]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.model_validate(yaml.safe_load(BUNDLE.read_text()))


def jobs(bundle: Bundle) -> list[Job]:
    own = [target.resources.jobs for target in bundle.targets.values() if target.resources]
    return [job for some in (bundle.resources.jobs, *own) for job in some.values()]


def test_every_field_is_known_and_both_kinds_of_target_exist(bundle: Bundle) -> None:
    assert {"serverless", "classic"} <= set(bundle.targets)
    assert [name for name, target in bundle.targets.items() if target.default] == ["serverless"]


def test_every_task_runs_on_a_defined_cluster_or_environment(bundle: Bundle) -> None:
    for job in jobs(bundle):
        environments = {environment.environment_key for environment in job.environments}
        clusters = {cluster.job_cluster_key for cluster in job.job_clusters}
        keys = [task.task_key for task in job.tasks]
        assert len(set(keys)) == len(keys)
        for task in job.tasks:
            assert (task.environment_key in environments) != (task.job_cluster_key in clusters)
            assert bool(task.libraries) == (task.job_cluster_key is not None)


def test_the_entry_point_is_one_of_the_wheels(bundle: Bundle) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for job in jobs(bundle):
        for task in job.tasks:
            assert task.python_wheel_task.package_name == project["name"]
            assert task.python_wheel_task.entry_point in project["scripts"]


def test_databricks_resolves_every_reference(bundle: Bundle) -> None:
    text = "\n".join(line.partition("#")[0] for line in BUNDLE.read_text().splitlines())
    assert set(re.findall(r"\{\{(.*?)\}\}", text)) <= REFERENCES
    assert set(re.findall(r"\$\{(.*?)\}", text)) <= {"workspace.file_path", "bundle.target"}


def test_every_task_lands_and_runs_a_job_of_the_project(bundle: Bundle) -> None:
    for job in jobs(bundle):
        defaults = {parameter.name: parameter.default for parameter in job.parameters}
        assert defaults == {"interval_end": "{{job.trigger.time.iso_datetime}}"}
        for task in job.tasks:
            given = {**task.python_wheel_task.named_parameters, "project": str(ROOT)}
            given["interval_end"] = "2013-03-01T00:10:07.123"
            land, run = commands_of([f"--{name}={value}" for name, value in given.items()])
            config = load_job(ROOT, given["job"])
            assert land[:4] == ["land", load_feed(ROOT, config.feed).feed, "--until", given["interval_end"]]
            assert run[:2] == ["run", config.job]


def test_the_target_needs_no_disk_but_the_drivers_and_nothing_that_is_not_synced(bundle: Bundle) -> None:
    target = load_target(ROOT, "databricks")
    assert (target.connect, target.commit, target.staging) == ("platform", "spark", "rows")
    assert target.ships == [], "the workers have the installed packages, so nothing is shipped"
    assert target.warehouse.startswith("/tmp/")  # noqa: S108 - heartbeats
    assert {Path(path).name for path in bundle.sync["paths"]} == {"conf", "jobs"}
    assert all("databricks-wheel" in artifact.build for artifact in bundle.artifacts.values())


def test_an_unresolved_reference_is_refused() -> None:
    with pytest.raises(UsageError, match="reference"):
        commands_of(["--job=hourly_departures", f"--project={ROOT}", "--interval_end={{job.triger.time}}"])


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(UsageError, match="--jobs"):
        commands_of(["--jobs=x", "--job=hourly_departures", f"--project={ROOT}"])


def test_databricks_own_parser_accepts_the_jobs(bundle: Bundle) -> None:
    reader = pytest.importorskip(
        "databricks.bundles.jobs", reason="databricks-bundles is under Databricks' own licence"
    )
    text: Any = yaml.safe_load(BUNDLE.read_text())
    for resources in (text["resources"], text["targets"]["classic"]["resources"]):
        for job in resources["jobs"].values():
            reader.Job.from_dict(job)


def test_a_failed_command_ends_the_task_with_its_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = copy_project(tmp_path)
    (root / "conf" / "targets" / "databricks.yaml").write_text("target: databricks\nwarehouse: warehouse\n")
    monkeypatch.setattr("sys.argv", ["rewindow-task", "--job=hourly_departures", f"--project={root}"])
    monkeypatch.setattr("rewindow.app.wheel_task.run_command", lambda command: 66 if command[0] == "land" else 0)
    with pytest.raises(TaskError, match="rewindow ended with 66: `rewindow land flights`") as raised:
        main()
    assert exit_code("TERMINATED", "FAILED", f"TaskError: {raised.value}") == 66
