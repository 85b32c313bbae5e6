"""Hostile names: a path built from a name stays below the warehouse, or the name is refused."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import rewindow
from rewindow.config.field_types import _dotted, _location, _name, _output_table
from rewindow.errors import ConfigError
from rewindow.streams.serde.schema import Column
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.shared.paths import changelog_path, internal_path, log_path, output_path, safe_name

ROOT = Path(__file__).parents[2]
SEED = 20261121
WHEREVER = (
    *"\"'`\\\x00\n\r\t ~*?|&;<>=-.,:#@!+()/",
    *(
        "..",
        "//",
        "../",
        "--",
        "{}",
        "[a]",
        "a=b",
        "\x1b[31m",
        "/etc/passwd",
        "$HOME",
        "file:///",
        "s3://",
        "C:\\",
        "{{ds}}",
    ),
    *("${jndi:ldap://x}", "'; DROP TABLE runs; --", "` OR 1=1", "%2e%2e%2f", "%00", "\uff0e\uff0e\uff0f", "\U0001f600"),
    *("\u0430", "\u2024", "\u2215", "\u202e", "\u200b", "\xe9"),
)
SAFE = re.compile(r"[A-Za-z0-9_./-]+")


@cache
def names() -> list[str]:
    rng = random.Random(SEED)
    made = ["", "a" * 100_000, *WHEREVER, *(f"a{bad}" for bad in WHEREVER), *(f"{bad}a" for bad in WHEREVER)]
    made += [f"a{bad}b" for bad in WHEREVER] + [f"a.{bad}.b" for bad in WHEREVER]
    while len(set(made)) < 600:
        made.append("".join(rng.choice((*WHEREVER, "ab", "c.d", "e_f")) for _ in range(rng.randint(1, 5))))
    return sorted(set(made))


PATHS: dict[str, Callable[[str], str]] = {
    "output": output_path,
    "branch": lambda name: output_path("a.b", name),
    "log": lambda name: log_path(name, name),
    "changelog": lambda name: changelog_path("job", name, [Column("a", "long")]),
    "internal": lambda name: internal_path("job", name, name),
    "ledger": lambda name: "x/" + Ledger("x", name).name,
    "name": lambda name: safe_name(name, "job"),
}


@pytest.mark.parametrize("make", PATHS.values(), ids=PATHS)
def test_a_path_of_any_name_stays_in_the_warehouse_or_is_refused(make: Callable[[str], str]) -> None:
    tried = names()
    assert len(tried) >= 500
    for name in tried:
        try:
            path = make(name)
        except ConfigError as error:
            assert "Traceback" not in str(error)  # noqa: PT017 - most are refused, some are not
            continue
        assert SAFE.fullmatch(path), (name, path)
        assert not path.startswith("/"), (name, path)
        assert ".." not in path.split("/"), (name, path)


@pytest.mark.parametrize("read", [_name, _dotted, _output_table])
def test_a_name_in_the_configuration_is_safe_or_refused(read: Callable[[object], str]) -> None:
    for name in names():
        try:
            word = read(name)
        except ValueError:
            continue
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,200}", word), name
        assert ".." not in word


def test_a_location_in_the_configuration_does_not_go_up() -> None:
    for name in names():
        try:
            location = _location(name)
        except ValueError:
            continue
        assert location.isprintable()
        assert ".." not in re.split(r"[/\\\\]", location)


FORBIDDEN = {"pickle", "cloudpickle", "marshal", "shelve", "dill", "joblib"}


def test_no_stored_value_is_unpickled_and_no_text_is_executed() -> None:
    for path in Path(rewindow.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not FORBIDDEN & {name.partition(".")[0] for name in imported}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec"}, f"{path}:{node.lineno}"


def test_dependencies_are_pinned_by_hash() -> None:
    for name in ("requirements.lock", "requirements-run.lock"):
        lock = (ROOT / name).read_text(encoding="utf-8")
        assert len(pins(lock)) == len(re.findall(r"^[a-z0-9][^ ]*==", lock, flags=re.MULTILINE)) > 30


def test_what_make_demo_installs_is_a_part_of_what_make_test_installs() -> None:
    """Otherwise `make test` would replace packages, and the demo would show other versions than the tests ran with."""
    run, everything = (
        pins((ROOT / name).read_text(encoding="utf-8")) for name in ("requirements-run.lock", "requirements.lock")
    )
    assert run < everything
    assert not {pin for pin in run if pin.startswith(("apache-airflow", "pytest", "mypy"))}


def pins(lock: str) -> set[str]:
    """Return the packages of a lock file with their versions and the first hash of each."""
    return set(re.findall(r"^[a-z0-9][^ ]*==[^ ]+ \\\n    --hash=sha256:[0-9a-f]{64}", lock, flags=re.MULTILINE))
