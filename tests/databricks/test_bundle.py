"""The bundle, checked without a workspace: its fields are known, their references exist, and nothing is misspelt.

The schema that the Databricks CLI prints may only be used with Databricks' services, so it is not stored here. The known
fields come from the documentation. If the CLI is installed, its schema is checked too; if `databricks-bundles` is, it parses
the jobs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
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
REFERENCES |= {"job.parameters.accept_changes"}


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
    max_retries: int = Field(ge=0)
    disable_auto_optimization: bool = False


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
    jobs: dict[str, dict[str, Any]]
    """The parts of jobs, as they are written; `deployed` puts them together."""


class Target(Part):
    default: bool = False
    mode: Literal["production"]
    workspace: dict[Literal["root_path"], str]
    resources: Resources


class Artifact(Part):
    type: Literal["whl"]
    path: str
    build: str


class Bundle(Part):
    bundle: dict[Literal["name"], str]
    variables: dict[str, dict[Literal["description", "default"], str]]
    artifacts: dict[str, Artifact]
    sync: dict[Literal["paths"], list[str]]
    resources: Resources
    targets: dict[str, Target]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.model_validate(yaml.safe_load(BUNDLE.read_text()))


def deployed(bundle: Bundle, target: str) -> dict[str, Job]:
    """Return the jobs that `databricks bundle deploy -t TARGET` deploys: the target's, merged into the bundle's."""
    ours = {name: dict(job) for name, job in bundle.resources.jobs.items()}
    for name, more in bundle.targets[target].resources.jobs.items():
        ours[name] = merged(ours.get(name, {}), more)
    return {name: Job.model_validate(job) for name, job in ours.items()}


def merged(job: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Merge two parts of a job as the CLI does: tasks by their key, other lists one after the other."""
    tasks: dict[str, dict[str, Any]] = {}
    for task in (*job.get("tasks", ()), *more.get("tasks", ())):
        tasks[task["task_key"]] = {**tasks.get(task["task_key"], {}), **task}
    assert not {name for name in job if name in more} - {"tasks"}, "one place for each setting"
    return {**job, **more, "tasks": list(tasks.values())}


def jobs(bundle: Bundle) -> list[Job]:
    return [job for target in bundle.targets for job in deployed(bundle, target).values()]


def test_every_field_is_known_and_both_kinds_of_target_exist(bundle: Bundle) -> None:
    assert set(bundle.targets) == {"serverless", "classic"}
    assert [name for name, target in bundle.targets.items() if target.default] == ["serverless"]


def test_each_target_deploys_one_job_on_its_own_kind_of_compute(bundle: Bundle) -> None:
    names = {target: [job.name for job in deployed(bundle, target).values()] for target in bundle.targets}
    assert names == {"serverless": ["hourly_departures"], "classic": ["hourly_departures_classic"]}
    (serverless,), (classic,) = (list(deployed(bundle, target).values()) for target in ("serverless", "classic"))
    assert (len(serverless.environments), len(serverless.job_clusters)) == (1, 0)
    assert (len(classic.environments), len(classic.job_clusters)) == (0, 1)


def test_databricks_retries_no_error_because_the_task_knows_which_ones_to_retry(bundle: Bundle) -> None:
    for job in jobs(bundle):
        for task in job.tasks:
            assert task.max_retries == 0
            assert task.disable_auto_optimization == (task.environment_key is not None)


def test_only_its_owner_may_change_the_deployed_code(bundle: Bundle) -> None:
    """Every user of a workspace may write below /Workspace/Shared. A path with the owner also means one copy."""
    assert "default" not in bundle.variables["owner"], "whoever deploys says who owns it"
    for target in bundle.targets.values():
        assert target.workspace["root_path"].startswith("/Workspace/Users/${var.owner}/")


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
    assert set(re.findall(r"\$\{(.*?)\}", text)) <= {
        "workspace.file_path",
        "bundle.name",
        "bundle.target",
        "var.owner",
    }


def test_every_task_lands_and_runs_a_job_of_the_project(bundle: Bundle) -> None:
    for job in jobs(bundle):
        defaults = {parameter.name: parameter.default for parameter in job.parameters}
        assert defaults == {"interval_end": "{{job.trigger.time.iso_datetime}}", "accept_changes": "false"}
        for task in job.tasks:
            given = {**task.python_wheel_task.named_parameters, "project": str(ROOT)}
            given["interval_end"] = "2013-03-01T00:10:07.123"
            given["accept_changes"] = "true"
            land, run = commands_of([f"--{name}={value}" for name, value in given.items()])
            assert "--accept-changes" in run
            assert "--accept-changes" not in land
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
    for job in jobs(bundle):
        reader.Job.from_dict(job.model_dump(exclude_defaults=True))


def test_the_schema_of_the_databricks_cli_accepts_the_bundle() -> None:
    cli, jsonschema = shutil.which("databricks"), pytest.importorskip("jsonschema")
    if cli is None:
        pytest.skip("the Databricks CLI is not installed")
    printed = subprocess.run([cli, "bundle", "schema"], capture_output=True, text=True, check=True).stdout
    # Python's `re` has no classes of Unicode letters and numbers.
    schema = json.loads(printed.replace(r"[\\p{L}\\p{N}]", r"\\w").replace(r"\\p{L}", "[a-zA-Z]"))
    jsonschema.validate(yaml.safe_load(BUNDLE.read_text()), schema)


def test_a_failed_command_ends_the_task_with_its_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = copy_project(tmp_path)
    (root / "conf" / "targets" / "databricks.yaml").write_text("target: databricks\nwarehouse: warehouse\n")
    monkeypatch.setattr("sys.argv", ["rewindow-task", "--job=hourly_departures", f"--project={root}"])
    monkeypatch.setattr("rewindow.app.wheel_task.run_command", lambda command: 66 if command[0] == "land" else 0)
    with pytest.raises(TaskError, match="rewindow ended with 66: `rewindow land flights`") as raised:
        main()
    assert exit_code("TERMINATED", "FAILED", f"TaskError: {raised.value}") == 66


@pytest.mark.parametrize(
    ("codes", "ends", "waits"),
    [
        ([74, 75, 0], 0, [60, 120]),
        ([75, 75, 75, 75], 75, [60, 120, 240]),
        ([71, 0], 0, [60]),
        ([71, 71], 71, [60]),
        ([76], 76, []),
        ([65], 65, []),
        ([70], 70, []),
    ],
)
def test_a_task_repeats_what_a_retry_can_help_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, codes: list[int], ends: int, waits: list[int]
) -> None:
    answers, waited = iter(codes), []
    monkeypatch.setattr("sys.argv", ["rewindow-task", "--job=hourly_departures", f"--project={ROOT}"])
    monkeypatch.setattr(
        "rewindow.app.wheel_task.run_command", lambda command: 0 if command[0] == "land" else next(answers)
    )
    monkeypatch.setattr("rewindow.app.wheel_task.time.sleep", waited.append)
    if ends:
        with pytest.raises(TaskError, match=f"rewindow ended with {ends}"):
            main()
    else:
        main()
    assert waited == waits
    assert list(answers) == []
