"""The JSON Schema of the YAML files: it accepts what the loader accepts, and refuses wrong keys, types, words and forms."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.cli.entry import run_command
from rewindow.app.new_project import Example, create_project
from rewindow.config.json_schema import KINDS, schema_of
from rewindow.config.load import load_feed, load_job, load_target
from rewindow.config.yaml_text import parse
from rewindow.errors import ConfigError
from tests.config.test_config_refused import REFUSED_FEEDS, REFUSED_JOBS, REFUSED_LOGS
from tests.config.test_mistakes import FEED, JOB, KEYS, TARGET, VALUES
from tests.config.written import LOW_ACTIVITY
from tests.conftest import ROOT

jsonschema = pytest.importorskip("jsonschema")
LOADERS = {"feed": load_feed, "job": load_job, "target": load_target}
RULES = (
    *("config-values-conflict", "config-key-duplicate", "config-template-not-rendered", "config-name-differs"),
    *("no unit", "out of range", "a time zone", "Mars/Base", "'..'", "begins with ~", "http://", "is empty"),
    *("got none", "table and path", "path and format", "job and output"),
    *("minute 61", "hour 24", "day 0", "'januar'", "'l'", "'R'", "a step of 0", "day 30,31"),
    *("reserves", "double underscore"),
)
"""What only the loader knows: ranges of durations, names that exist, and rules between keys."""


def shape(kind: str) -> Any:
    return jsonschema.Draft202012Validator(schema_of(kind))


def files() -> Iterator[Path]:
    yield from sorted((ROOT / "conf").glob("*s/*.yaml"))
    yield from sorted((ROOT / "lib/rewindow/app/examples").glob("*/conf/*/*.yaml"))


@pytest.mark.parametrize("path", list(files()), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_of_this_repository_and_of_a_new_project_is_valid(path: Path) -> None:
    kind = path.parent.name.removesuffix("s")
    LOADERS[kind](path.parents[2], path.stem)
    found = [error.message for error in shape(kind).iter_errors(parse(path.read_text(), path.name).values)]
    assert not found


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_schema_in_which_every_key_is_explained(kind: Any) -> None:
    schema = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    for name, part in {kind: schema, **schema.get("$defs", {})}.items():
        assert part["additionalProperties"] is False, name
        unexplained = [key for key, value in part["properties"].items() if not value.get("description")]
        assert not unexplained, name


def wrong() -> Iterator[Any]:
    valid = {"feed": "f", "partitions": 8, "logs": {"e": {"source": {"table": "a.b"}, "key": "k", "timestamp": "t"}}}
    for name, (keys, *said) in REFUSED_FEEDS.items():
        yield pytest.param("feed", {**valid, **keys}, str(said), id=f"feed {name}")
    for name, (keys, *said) in REFUSED_LOGS.items():
        log = {**valid["logs"]["e"], **keys}
        yield pytest.param("feed", {**valid, "logs": {"e": log}}, str(said), id=f"log {name}")
    for name, (line, *said) in REFUSED_JOBS.items():
        values = {**parse(LOW_ACTIVITY, "job").values, **parse(line, "job").values}
        yield pytest.param("job", values, str(said), id=f"job {name}")
    for name, (old, new, _, *said) in {**KEYS, **VALUES}.items():
        yield pytest.param("feed", parse(FEED.replace(old, new), "feed").values, str(said), id=f"mistake {name}")
    yield pytest.param("target", {"target": "x", "warehouse": "w", "execution": "fast"}, "", id="word")
    yield pytest.param("target", {"target": "x"}, "", id="missing")


@pytest.mark.parametrize(("kind", "values", "said"), list(wrong()))
def test_what_the_loader_refuses_for_its_shape_is_refused(kind: str, values: Any, said: str) -> None:
    is_refused = bool(list(shape(kind).iter_errors(values)))
    assert is_refused or any(rule in said for rule in RULES), "the schema accepts this"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "feed",
            FEED.replace(
                "  every: 1h", "  every: 1h30m\n  watermark: interval_end\n  memory: 1 GiB\n  max_ahead: none"
            ),
        ),
        ("feed", FEED + "max_task_idle: forever\nlag: 0\nzone: Europe/Berlin\n"),
        ("feed", FEED.replace("customer", "[größe, b]").replace("ordered_at", "jobs.times:of")),
        (
            "feed",
            FEED.replace("{header: true}", "{header: true, null: 3.10, skip_rows: 4, time_format: {at: yyyy-MM-dd}}"),
        ),
        ("feed", FEED.replace("1h", "")),
        (
            "job",
            JOB.replace("slip: fail", "slip: retry 3 quarantine") + "limits: {store_rows: 1_000}\n",
        ),
        ("job", JOB + 'schedule: "*/15 6-18 * * MON-FRI"\n'),
        ("job", JOB + "schedule: '@daily'\n"),
        (
            "job",
            JOB.partition("outputs:")[0]
            + "outputs: {o: {table: a.b, expect: [{not_null: x}, {unique: key, name: u}, {unique: [x, y], on_fail: warn}, "
            "{range: {column: x, min: 0.5}, on_fail: hold}, {values: {column: x, allowed: [1, a, true]}}, {rows: {max: 5}}, "
            "{late: 0.5%}, {sql: SELECT 1}]}}\n",
        ),
        ("target", TARGET + "cores: 2\nmaster: spark://h:7077\nships: [dist/*.whl]\nspark: {spark.x: true}\n"),
        ("target", "target: local\nwarehouse: s3://b/w\nstorage_options: {AWS_REGION: eu}\n"),
    ],
)
def test_what_the_loader_accepts_is_accepted(tmp_path: Path, kind: str, text: str) -> None:
    name = {"feed": "orders", "job": "totals", "target": "local"}[kind]
    path = tmp_path / "conf" / f"{kind}s" / f"{name}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    LOADERS[kind](tmp_path, name)
    assert [error.message for error in shape(kind).iter_errors(parse(text, "x").values)] == []


@pytest.mark.parametrize("example", list(Example))
def test_a_new_project_tells_editors_where_the_schemas_are(tmp_path: Path, example: Example) -> None:
    create_project(tmp_path, example)
    named = 0
    for path in (tmp_path / "conf").glob("*s/*.yaml"):
        first = path.read_text().splitlines()[0]
        marker, _, location = first.partition("=")
        assert marker == "# yaml-language-server: $schema"
        schema = json.loads((path.parent / location).read_text())
        assert schema == schema_of(path.parent.name.removesuffix("s"))  # type: ignore[arg-type]
        named += 1
    assert named == 3


def test_the_command_prints_one_schema_or_all(tmp_path: Path) -> None:
    def printed(*words: str) -> Any:
        out = io.StringIO()
        with redirect_stdout(out):
            assert run_command(["schema", *words]) == 0
        return json.loads(out.getvalue())

    assert printed("job") == schema_of("job")
    assert printed() == printed("--json") == {kind: schema_of(kind) for kind in KINDS}
    assert run_command(["schema", "jobs"]) == 2


def test_a_file_that_the_schema_refuses_is_refused_by_the_loader(tmp_path: Path) -> None:
    path = tmp_path / "conf/targets/local.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(f"{TARGET}wharehouse: x\n")
    with pytest.raises(ConfigError):
        load_target(tmp_path, "local")
