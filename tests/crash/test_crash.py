"""A sample of the fault matrix, and checks that every step and durable write of the protocol has cases."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.crash.matrix import EVERYWHERE, cases_of

LIB = ROOT / "lib" / "rewindow"
MACHINES = (
    "control/run.py",
    "control/branch.py",
    "control/drift_repair.py",
    "control/garbage_collection.py",
    "control/ingest/land.py",
    "tables/delta/gc.py",
    "tables/delta/merging.py",
    "tables/delta/publish.py",
    "tables/delta/publish.py",
    "tables/delta/feeds.py",
)
"""The modules that name steps."""

STEP_CALLS = {"update", "_append", "step", "merge_files"}
"""The functions whose argument is the name of a step."""

DURABLE = {
    "create_write_transaction",
    "link",
    "create",
    "open_output_stream",
    "open",
    "unlink",
    "add_columns",
    "delete_dir",
    "delete_file",
}
WRAPPED = {
    ("tables/delta/files.py", "delete_file"),
    ("tables/delta/merging.py", "create_write_transaction"),
    ("tables/delta/commit.py", "create_write_transaction"),
    # The probe of a bucket in the same module writes to a folder of its own, which nothing else reads.
    ("tables/delta/create_table.py", "create"),
    ("tables/delta/create_table.py", "create_write_transaction"),
    ("tables/delta/delta_log.py", "open"),
    ("tables/delta/delta_log.py", "link"),
    ("tables/delta/delta_log.py", "unlink"),
    ("tables/delta/files.py", "open_output_stream"),
    ("engine/worker/parquet_writer.py", "open"),
    ("engine/worker/parquet_writer.py", "unlink"),
}
"""Durable writes around which `sites.Sites` has sites."""

EXEMPT = {
    (
        "tables/delta/log_tables.py",
        "add_columns",
    ),  # a separate step, which adds columns for a new generation before anything is planned
    ("tables/delta/files.py", "delete_dir"),  # the temporary folder of a verify
    ("engine/worker/parquet_writer.py", "open_output_stream"),  # an object that `FileWriter.close` writes
    ("storage/progress.py", "open_output_stream"),
    ("storage/progress.py", "unlink"),
    ("storage/progress.py", "delete_file"),
}


def sample(suites: str, folder: Path) -> tuple[int, dict[str, Any], str]:
    """Run a sample in a new process, because a process that forks must not have opened a table. Return the command's result."""
    command = [sys.executable, "-m", "tests.crash", "--quick", "--json", "--suites", suites, "--results", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return sample("matrix,duels", tmp_path_factory.mktemp("results"))


@pytest.mark.spark
@pytest.mark.slow
def test_a_driver_of_real_spark_dies_too(tmp_path):
    code, said, log = sample("spark", tmp_path)
    assert code == 0, log[-3000:]
    assert said["cases"] > 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.cluster
def test_a_client_of_spark_connect_dies_too(tmp_path):
    code, said, log = sample("governed", tmp_path)
    assert code == 0, log[-3000:]
    assert said["cases"] == 2, "a site of the sample is gone: choose others in tests/crash/governed.py"
    assert said["suites"]["governed"]["more"]["during"] == 1


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_in_a_sample(quick):
    code, said, log = quick
    assert code == 0, log[-3000:]
    assert said["cases"] > 30
    assert said["contested"] > 0, "no two processes reached the same commit, so the duels prove nothing"
    assert (said["not_reached"], said["lost"], said["doubled"], said["wrong"]) == (0, 0, 0, 0)


@pytest.mark.slow
def test_commands_that_are_killed_stopped_or_meet_a_changed_byte_recover(tmp_path):
    code, said, log = sample("random-kills,stops,mutated-bytes", tmp_path)
    assert code == 0, log[-3000:]
    assert said["cases"] == 14
    assert said["suites"]["stops"]["more"]["overtaken"] > 0, (
        "no stopped process was overtaken, so the duels prove nothing"
    )


@pytest.mark.slow
def test_random_histories_of_commands_leave_the_rows_of_a_naive_count(tmp_path):
    code, said, log = sample("histories", tmp_path)
    assert code == 0, log[-3000:]
    assert said["cases"] == 2
    assert said["suites"]["histories"]["more"]["advice followed"] > 0, "no command was refused, so no advice was tried"


@pytest.mark.slow
def test_every_step_that_is_named_has_cases(quick):
    traced = quick[1]["suites"]["matrix"]["more"]["steps"]
    named = {name for path in MACHINES for name in named_steps(LIB / path)}
    assert len(named) > 12
    without = [name for name in sorted(named) if not any(step.startswith(name) for step in traced)]
    assert not without, f"no operation of tests/crash/operations.py passes these steps: {without}"


@pytest.mark.slow
def test_what_is_wrapped_goes_on_to_its_end():
    """A wrapper that breaks a call would look like a faster process, and hide the sites after it."""
    program = """if True:
        from tests.crash.matrix import folder
        from tests.crash.operations import OPERATIONS
        from tests.crash.sites import traced
        with folder() as root:
            OPERATIONS["first-run"].prepare(root, 0)
            print(*traced(root, OPERATIONS["first-run"].act(root)), sep="\\n")
    """
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    of = Counter(re.sub(r" \(\d+\)$", "", site).rpartition(": ")[2] for site in done.stdout.splitlines())
    assert of["create"] == of["created"] > 0
    assert of["files written"] == of["landed"] > 0


@pytest.mark.slow
def test_a_process_that_dies_while_it_stores_what_the_rows_give_does_no_harm():
    """Usually it stores that once in 200 runs; here, before each append (ADR-127)."""
    program = """if True:
        from rewindow.tables.delta import ledger
        from tests.crash.matrix import Case, folder, ground, run_case
        from tests.crash.operations import OPERATIONS
        ledger.SMALL_ROWS = 1
        with folder() as root:
            made = ground(root, OPERATIONS["run"], 0)
            for site in made.sites:
                if "rewindow/runs: write" in site or "rewindow/runs: half" in site:
                    print(run_case(Case("run", 0, site), made).said)
    """
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ok"] * 8, "two writes before each of two appends, each of them whole and torn"


def test_each_seed_kills_at_each_name_and_the_first_ones_in_each_operation():
    sites = {"run": ["plan", "commit > runs: landed"], "fix": ["plan", "fix"]}
    everywhere = [(case.operation, case.site) for case in cases_of(EVERYWHERE - 1, sites)]
    assert everywhere == [(name, site) for name, passed in sites.items() for site in passed]
    later = [cases_of(seed, sites) for seed in range(EVERYWHERE, 20)]
    assert all(sorted(case.site for case in cases) == ["commit > runs: landed", "fix", "plan"] for cases in later)
    assert {case.operation for cases in later for case in cases if case.site == "plan"} == {"run", "fix"}


@pytest.mark.slow
def test_every_mutant_can_still_be_made():
    program = "from tests.crash.mutants import unmade; print(*unmade(), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "\n", done.stdout + done.stderr


def test_every_write_that_lasts_has_sites():
    found = {
        (str(path.relative_to(LIB)), call)
        for folder in ("tables/delta", "control", "engine", "storage")
        for path in (LIB / folder).rglob("*.py")
        for call in durable_calls(path)
    }
    protocol = {
        (path, call)
        for path, call in found
        if path.startswith(("tables/delta/", "storage/")) or path == "engine/worker/parquet_writer.py"
    }
    assert protocol - EXEMPT == WRAPPED, "wrap the new call in tests/crash/sites.py and name it here"


def named_steps(path: Path) -> set[str]:
    """Return the constant prefixes of the step names that a module yields or passes to one of `STEP_CALLS`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        values = [node.value] if isinstance(node, ast.Yield) else []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in STEP_CALLS:
            values += node.args
        for value in values:
            first = value.values[0] if isinstance(value, ast.JoinedStr) else value
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                names.add(first.value)
    return names


def durable_calls(path: Path) -> set[str]:
    calls = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DURABLE:
            is_os_open = node.func.attr == "open" and ast.unparse(node.func) == "os.open"
            if node.func.attr != "open" or is_os_open:
                calls.add(node.func.attr)
    return calls
