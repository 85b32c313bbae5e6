"""Every scenario, whole and cut, passes, deviates as listed, or lacks an operator."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from tests import oracle
from tests.conformance import verdict
from tests.conformance.__main__ import main
from tests.conformance.listed import listed_deviations
from tests.conformance.outcome import of_group, of_record, of_result
from tests.conformance.scenario import CARRIED, read, vector_files

FILES = vector_files()
JOINS = {"stream_stream_join", "stream_table_join"}
SEEDS = ("seed_kip138", "seed_timeshift", "seed_kip251", "seed_kip353")
FORMS = ("rand_cogroup", "rand_mapped_key", "rand_transform_values")


SUPPRESS = [file.stem for file in FILES if "suppress" in file.stem or file.stem == "seed_kip328"]
"""Files that have recorded buffers and metrics too."""


@pytest.mark.parametrize("mode", ["whole", "cut"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_recorded_outputs(file: Path, mode: str) -> None:
    verdicts = [verdict.judge(case, cut=mode == "cut", internals=file.stem in SUPPRESS) for case in read(file)]
    failed = {v.case.name: v.reason for v in verdicts if v.status == verdict.FAILED}
    assert failed == {}
    deviating = {v.case.name: v.number for v in verdicts if v.status == verdict.DEVIATING}
    listed = {name: one.number for (stem, name), one in listed_deviations().items() if stem == file.stem}
    assert deviating == listed, "add new deviations to the list with a reason, and remove those that pass now"
    if file.stem in SEEDS:
        assert {v.reason for v in verdicts if v.status == verdict.NOT_PLAYED} <= JOINS


def test_seeds_and_later_forms_are_there_in_a_lone_clone_and_beside_the_shared_recordings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VECTORS", raising=False)
    assert {file.stem for file in CARRIED.glob("*.jsonl")} >= {*SEEDS, *FORMS, "rand_choices"}
    assert {file.stem for file in vector_files()} >= {*SEEDS, *FORMS, "rand_choices"}


def test_the_carried_facts_are_those_that_were_recorded() -> None:
    for file in FILES:
        carried = CARRIED / file.name
        assert not carried.exists() or carried.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_twin_at_kafkas_rules_gives_what_kafka_gave_and_holds_in_its_buffers_what_kafka_held(file: Path) -> None:
    rules = oracle.Rules(frozenset(oracle.SWITCHES))
    for case in read(file):
        with suppress(oracle.NotCoveredError):
            if case.mode == "partition_group":
                assert of_group(case, rules).difference(of_record(case)) == "", case.name
                continue
            twin = oracle.play(case.scenario, rules)
            assert of_result(case, twin).difference(of_record(case)) == "", case.name
            for step, entries in zip(case.expected["steps"], twin.buffers, strict=True):
                assert step.get("buffers", entries) == entries, case.name
            assert case.expected.get("buffers", {}) in ({}, *twin.buffers[-1:]), case.name


def test_the_command_prints_the_counts_and_fails_if_a_scenario_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = CARRIED / "seed_kip251.jsonl"
    assert main([str(good), "--json", "--mode", "cut"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts == {"passed": 9, "failed": 0, "deviating": {"D21": 1}, "not_played": 0, "failed_names": []}
    lines = [json.loads(line) for line in good.read_text(encoding="utf-8").splitlines()]
    lines[0]["expected"]["steps"][0]["out"][0]["ts"] += 1
    bad = tmp_path / "bad.jsonl"
    bad.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    assert main([str(bad), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["failed_names"] == ["kip251_forward_default"]


def test_each_reason_belongs_to_a_switch_of_the_twin() -> None:
    numbers = {number for one in listed_deviations().values() for number in one.number.split("+")}
    assert numbers <= set(oracle.SWITCHES)
