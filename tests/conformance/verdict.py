"""Pass, deviate, fail or not played: one scenario against its recorded result.

A scenario passes if every step, the error and the final stores are equal; inside a step in which law 1 or D6 decided a
tie, order may differ. It deviates by a number only with a proof: the naive twin with that switch at Kafka's rule gives
the recorded result, and with all switches at ours it gives what the engine gave. Anything else has failed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from rewindow.testing import naive
from tests.conformance import drive, group
from tests.conformance.build import MissingError
from tests.conformance.played import Played
from tests.conformance.scenario import Case

PASSED, FAILED, DEVIATING, NOT_PLAYED = "passed", "failed", "deviating", "not_played"
TIES = frozenset({"D6", "law 1"})


@dataclass(frozen=True)
class Verdict:
    """What became of a scenario. ``number``: the decision it deviates by; ``reason``: what was missing or differs."""

    case: Case
    status: str
    number: str = ""
    reason: str = ""


def judge(case: Case, *, cut: bool) -> Verdict:
    """Play a case and compare."""
    try:
        played = group.play(case.scenario) if case.mode == "partition_group" else drive.play(case.scenario, cut=cut)
    except MissingError as missing:
        return Verdict(case, NOT_PLAYED, reason=str(missing))
    except Exception as error:  # noqa: BLE001 - whatever an engine raises is a failed scenario, not the end of the player
        return Verdict(case, FAILED, reason=f"{type(error).__name__}: {error}")
    difference = differ(case.expected, played)
    if difference is None:
        return Verdict(case, PASSED)
    number = proven_deviation(case, played)
    return Verdict(case, DEVIATING if number else FAILED, number, difference)


def differ(expected: dict[str, Any], played: Played) -> str | None:
    """Return the first difference in words, or None."""
    error = expected.get("error")
    wanted = (error["phase"], error.get("step")) if error else None
    if wanted != played.error:
        return f"error: recorded {wanted}, got {played.error} {played.message}"
    if _text(expected.get("init", [])) != _text(played.init):
        return f"init: recorded {expected.get('init', [])}, got {played.init}"
    steps = [_recorded(step) for step in expected["steps"]]
    if len(steps) != len(played.steps):
        return f"steps: recorded {len(steps)}, got {len(played.steps)}"
    for number, (one, other) in enumerate(zip(steps, played.steps, strict=True)):
        same = _text(one) == _text(other) or (number in played.ties and _unordered(one) == _unordered(other))
        if not same:
            return f"step {number}: recorded {one}, got {other}"
    for name, rows in expected.get("stores", {}).items() if not error else ():
        if _text(rows) != _text(played.stores.get(name)):
            return f"store {name}: recorded {rows}, got {played.stores.get(name)}"
    for name, value in played.metrics.items():
        if expected["metrics"][name] != value:
            return f"metric {name}: recorded {expected['metrics'][name]}, got {value}"
    return None


def proven_deviation(case: Case, played: Played) -> str:
    """Return the numbers by which a case deviates, as ``D2`` or ``D2+D6``; an empty text if nothing is proven."""
    try:
        if not _is_same(_twin(case, frozenset()), _engine(played)):
            return ""
        for size in range(1, len(naive.SWITCHES) + 1):
            for chosen in combinations(naive.SWITCHES, size):
                if _explains(case, frozenset(chosen)):
                    return "+".join(chosen)
    except naive.NotCoveredError:
        return ""
    return ""


def _explains(case: Case, switches: frozenset[str]) -> bool:
    """Say whether these switches give what was recorded, but for the order inside a tie, which the heap then gives."""
    recorded = _Outcome(
        [_recorded(step) for step in case.expected["steps"]],
        case.expected.get("error"),
        case.expected.get("stores", {}),
    )
    ours = _twin(case, switches)
    as_sets = [_unordered(step) for step in ours.steps] == [_unordered(step) for step in recorded.steps]
    return as_sets and _is_same(_twin(case, switches | TIES), recorded)


@dataclass(frozen=True)
class _Outcome:
    steps: list[Any]
    error: Any
    stores: dict[str, Any]


def _engine(played: Played) -> _Outcome:
    return _Outcome(played.steps, played.error, played.stores)


def _twin(case: Case, switches: frozenset[str]) -> _Outcome:
    rules = naive.Rules(switches)
    if case.mode == "partition_group":
        return _Outcome(naive.play_group(case.scenario, rules), None, {})
    result = naive.play(case.scenario, rules)
    return _Outcome(result.steps, result.error_step, result.stores)


def _is_same(twin: _Outcome, other: _Outcome) -> bool:
    """Say whether the twin gave what the other did, order included; of stores what the twin knows."""
    if (twin.error is None) != (other.error is None) or _text(twin.steps) != _text(other.steps):
        return False
    stores = {} if twin.error is not None else twin.stores
    return all(
        _unordered(rows) == _unordered(other.stores[name]) for name, rows in stores.items() if name in other.stores
    )


def _recorded(step: dict[str, Any]) -> Any:
    if "out" in step:
        return step["out"]
    return {name: value for name, value in step.items() if name != "i"}


def _text(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True)


def _unordered(step: Any) -> Any:
    """Return a step without the order of what was sent or picked in it."""
    if isinstance(step, list):
        return sorted(_text(one) for one in step)
    return {name: _unordered(value) if isinstance(value, list) else _text(value) for name, value in step.items()}
