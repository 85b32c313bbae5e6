"""The player of recorded scenarios: what it says of recordings of every form, without ever ending in a traceback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rewindow.errors import RewindowError
from tests import oracle
from tests.conformance import group, on_spark, verdict
from tests.conformance.__main__ import main
from tests.conformance.on_spark import Played
from tests.conformance.outcome import of_engine, of_twin
from tests.conformance.scenario import CARRIED, Case
from tests.oracle.joins import LEFT, RIGHT, Lonely, StreamStreamJoin
from tests.oracle.nodes import Origin, Setting

GROUP: dict[str, Any] = {
    "name": "negative",
    "mode": "partition_group",
    "config": {"timestamp_extractor": "fail"},
    "partitions": ["a-0", "b-0"],
    "steps": [
        {"add": "a-0", "records": [{"ts": 1}]},
        {"drain": 1},
        {"add": "b-0", "records": [{"ts": -5}]},
        {"next": 1},
    ],
}
ERRORS: dict[str, dict[str, Any]] = {
    "as a driver has it": {"phase": "step", "step": 2, "class": "StreamsException", "causes": [], "message": ""},
    "without a phase": {"step": 2, "class": "StreamsException", "message": "negative"},
    "without a step, which the last one is": {"class": "StreamsException", "message": "negative"},
}
"""The forms in which a recording may have the error of a partition group."""


@pytest.mark.parametrize("mode", ["whole", "cut", "spark"])
@pytest.mark.parametrize("form", ERRORS)
def test_an_error_of_a_partition_group_is_compared(form: str, mode: str) -> None:
    played = group.play(GROUP)
    assert (played.error, len(played.steps)) == (("step", 2), 2)
    steps = [{"i": number, **step} for number, step in enumerate([*played.steps, {"error": "StreamsException"}])]
    case = Case("held-out", GROUP, {"name": "negative", "steps": steps, "error": ERRORS[form]})
    if mode == "spark":
        assert verdict.judge_on_spark(case, engine=None).status == verdict.NOT_PLAYED  # type: ignore[arg-type]
        return
    judged = verdict.judge(case, cut=mode == "cut")
    assert (judged.status, judged.reason) == (verdict.PASSED, "")
    assert of_twin(case, frozenset(oracle.SWITCHES)).difference(of_engine(played)) == ""


def test_an_error_of_a_partition_group_that_kafka_has_not_fails() -> None:
    case = Case("held-out", GROUP, {"steps": [{}] * 4, "error": None, "metrics": {}})
    judged = verdict.judge(case, cut=False)
    assert (judged.status, judged.reason.startswith("error: recorded None, got ('step', 2)")) == (verdict.FAILED, True)


def scenario(**parts: Any) -> dict[str, Any]:
    sources, sinks = [{"name": "in", "kind": "stream", "value": "long"}], [{"name": "out", "in": "in"}]
    return {"name": "one", "sources": sources, "nodes": [], "sinks": sinks, "steps": [], **parts}


PROCESSOR = {"name": "p", "op": "processor", "in": "in", "value": "long"}
UNKNOWN: dict[str, tuple[Mapping[str, Any], str]] = {
    "teleport": (scenario(nodes=[{"name": "t", "op": "teleport", "in": "in"}]), "teleport"),
    "map_values with 'halve'": (
        scenario(nodes=[{"name": "m", "op": "map_values", "in": "in", "fn": {"halve": 1}}]),
        "map_values with 'halve'",
    ),
    "the action sleep": (scenario(nodes=[{**PROCESSOR, "on_record": [{"do": "sleep"}]}]), "the action sleep"),
    "an action inside an if": (
        scenario(nodes=[{**PROCESSOR, "on_init": [{"do": "if", "pred": {"gt": 1}, "then": [{"do": "sleep"}]}]}]),
        "the action sleep",
    ),
    "a step": (scenario(steps=[{"restart": 1}]), "a step with restart"),
    "a step of a group": ({**GROUP, "steps": [{"restart": 1}]}, "a step with restart"),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_the_player_does_not_know_is_not_played_and_named(what: str) -> None:
    unknown, reason = UNKNOWN[what]
    judged = verdict.judge(Case("held-out", dict(unknown), {"steps": [{"out": []}], "error": None}), cut=False)
    assert (judged.status, judged.reason) == (verdict.NOT_PLAYED, reason)


def test_a_recording_that_cannot_be_compared_is_said_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in (CARRIED / "seed_kip251.jsonl").read_text(encoding="utf-8").splitlines()[:2]]
    lines[0]["expected"]["stores"] = ["not", "by", "name"]
    del lines[1]["expected"]["metrics"], lines[1]["expected"]["stores"], lines[1]["expected"]["error"]
    file = tmp_path / "odd.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert main([str(file)]) == 1
    printed = capsys.readouterr().out
    assert f"FAILED     odd: {lines[0]['scenario']['name']}: the player cannot compare it: AttributeError" in printed
    assert "passed 1, failed 1" in printed


def test_a_line_that_is_no_recording_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "odd.jsonl"
    file.write_text(
        (CARRIED / "seed_kip251.jsonl").read_text(encoding="utf-8").splitlines()[0] + '\n{"scenario": {}}\n'
    )
    with pytest.raises(SystemExit, match="2"):
        main([str(file)])
    assert "odd.jsonl:2: not a scenario with its result: KeyError: 'expected'" in capsys.readouterr().err


def test_two_records_of_one_key_and_time_are_two_to_kafkas_search() -> None:
    """It ends at the second record of the right side, not behind it, so the oldest that is left is at 6."""
    spec = {"name": "j", "op": "stream_stream_join", "how": "outer", "before": 10, "after": 10, "grace": 0}
    join = StreamStreamJoin(
        Setting(spec, [], lambda _message: None, oracle.Rules(frozenset(oracle.SWITCHES)), Origin())
    )
    join._clock = 8
    join._lonely = [Lonely(5, LEFT, "k", ["l"]), Lonely(6, RIGHT, "k", ["r", "r"]), Lonely(7, LEFT, "k", ["m"])]
    assert join._last_looked_at() == 6
    join._lonely[1].values.pop()
    assert join._last_looked_at() == 7


def test_a_failing_step_is_found_in_a_branch_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed run's plan comes again in its branch, whatever is asked for."""
    replayed: list[tuple[str, int]] = []

    def replay(
        _tables: Any, _engine: Any, _feed: str, branch: str, _load: Any, _semantics: Any, ends: list[int]
    ) -> None:
        replayed.append((branch, *ends))
        if ends[0] >= 4:
            raise RewindowError("made-up", "landing 4 is too much")

    def read_tables(_tables: Any, branch: str, _load: Any, landings: int, played: Played, _scenario: Any) -> None:
        played.steps = [[{"sink": branch}] for _ in range(landings)]

    monkeypatch.setattr(on_spark.landed, "replay", replay)
    monkeypatch.setattr(on_spark, "_read", read_tables)
    played = on_spark._replayed(None, None, "several", lambda: None, [2, 5], {})  # type: ignore[arg-type]
    assert played.error == ("step", 3)
    alone = "several-by-landing"
    assert replayed == [("several", 2), ("several", 5), (alone, 1), (alone, 2), (alone, 3), (alone, 4)]
    assert [step[0]["sink"] for step in played.steps] == ["several", "several", alone]
