"""The verdict on a scenario, by comparison with its recorded result: passed, deviating, failed or not played.

A scenario passes if every step, the error and the final stores are equal. Inside a step in which L1 or D6 decided a tie, the
order may differ. A scenario also passes if it is proven that only L1's order of a tie causes the differences, because L1 is a
law and not a numbered decision. It deviates by a number only with a proof: the naive twin gives the recorded result with this
switch at Kafka's rule, and the engine's result with all switches at ours; and if the engine's rows hold what the decision
promises (`claims`). All other scenarios fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewindow.control.run import Engine
from tests.conformance import drive, group, on_spark
from tests.conformance.build import MissingError
from tests.conformance.on_spark import NotLandedError
from tests.conformance.outcome import text, unordered
from tests.conformance.played import Played, before_failure
from tests.conformance.proof import LAW_1, broken_claim, proven_deviation
from tests.conformance.scenario import Case
from tests.oracle import NotCoveredError

PASSED, FAILED, DEVIATING, NOT_PLAYED = "passed", "failed", "deviating", "not_played"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a scenario. ``number``: the decisions by which it deviates; ``reason``: what is missing or differs."""

    case: Case
    status: str
    number: str = ""
    reason: str = ""


def judge(case: Case, *, cut: bool, internals: bool = False) -> Verdict:
    """Play a case and compare. With ``internals``, also compare the buffers and metrics of a case that passes."""
    try:
        played = (
            group.play(case.scenario)
            if case.mode == "partition_group"
            else drive.play(case.scenario, cut=cut, recorded=case.expected if internals else None)
        )
    except MissingError as missing:
        return Verdict(case, NOT_PLAYED, reason=str(missing))
    except Exception as error:  # noqa: BLE001 - whatever an engine raises is a failed scenario, not the end of the player
        return Verdict(case, FAILED, reason=f"{type(error).__name__}: {error}")
    try:
        difference = differ(case, played)
        if difference is None:
            return Verdict(case, FAILED, reason=played.inside) if played.inside else Verdict(case, PASSED)
        number = proven_deviation(case, played)
        if number and (claim := broken_claim(case, number)):
            return Verdict(case, FAILED, number, f"{number} explains it, but rewindow breaks its promise: {claim}")
    except NotCoveredError as unknown:
        return Verdict(
            case, FAILED, reason=f"{difference}; the twin does not know {unknown}, so no deviation is proven"
        )
    except Exception as error:  # noqa: BLE001 - a recording that cannot be compared is not the end of the player
        return Verdict(case, FAILED, reason=f"the player cannot compare it: {type(error).__name__}: {error}")
    if number == LAW_1:
        return Verdict(case, PASSED, number, difference)
    return Verdict(case, DEVIATING if number else FAILED, number, difference)


def judge_on_spark(case: Case, engine: Engine) -> Verdict:
    """Play a case through Spark and Delta, in one run and in several, and compare the tables of each branch.

    If the driver's deviation is proven, the tables must have the driver's result.
    """
    if case.mode == "partition_group":
        return Verdict(case, NOT_PLAYED, reason="the order of polls, which Spark does not have")
    try:
        branches = on_spark.play(case.scenario, engine)
        in_memory = drive.play(case.scenario, cut=False)
    except (MissingError, NotLandedError) as missing:
        return Verdict(case, NOT_PLAYED, reason=str(missing))
    except Exception as error:  # noqa: BLE001 - see judge
        return Verdict(case, FAILED, reason=f"{type(error).__name__}: {error}")
    known = judge(case, cut=False)
    for branch, played in branches.items():
        recorded = _Tables.recorded(case)
        difference = recorded.differ(played, in_memory.ties)
        if difference is not None and known.number:
            difference = _Tables.played(in_memory).differ(played, in_memory.ties)
        if difference is not None:
            return Verdict(case, FAILED, reason=f"{branch}: {difference}")
    return known if known.number else Verdict(case, PASSED)


@dataclass(frozen=True)
class _Tables:
    """The content of a scenario's tables: sent records by step and sink, the stores, and the step at which it fails."""

    steps: list[dict[str, list[Any]]]
    stores: dict[str, Any]
    error: tuple[str, int | None] | None

    @classmethod
    def recorded(cls, case: Case) -> _Tables:
        return cls._of(case.steps, case.expected.get("init", []), case.expected.get("stores", {}), case.error)

    @classmethod
    def played(cls, played: Played) -> _Tables:
        return cls._of(played.steps, played.init, played.stores, played.error)

    @classmethod
    def _of(cls, steps: list[Any], init: list[Any], stores: dict[str, Any], error: Any) -> _Tables:
        """Merge what was sent before the first step into it, and omit the failed step."""
        sent = [[*init, *steps[0]], *steps[1:]] if steps else []
        return cls([_by_sink(step) for step in before_failure(sent, error)], stores, error)

    def differ(self, played: Played, ties: set[int]) -> str | None:
        """Describe the first difference, or return None. In a step with a tie, the order within a sink is not compared."""
        if self.error != played.error:
            return f"error: recorded {self.error}, got {played.error} {played.message}"
        if len(self.steps) != len(played.steps):
            return f"steps: recorded {len(self.steps)}, got {len(played.steps)}"
        for number, (one, step) in enumerate(zip(self.steps, played.steps, strict=True)):
            other = _by_sink(step)
            if text(one) != text(other) and (number not in ties or unordered(one) != unordered(other)):
                return f"step {number}: recorded {one}, got {other}"
        for name, rows in self.stores.items() if not self.error else ():
            if text(rows) != text(played.stores.get(name, [])):
                return f"store {name}: recorded {rows}, got {played.stores.get(name)}"
        return None


def _by_sink(step: list[dict[str, Any]]) -> dict[str, list[Any]]:
    sinks: dict[str, list[Any]] = {}
    for one in step:
        sinks.setdefault(one["sink"], []).append(one)
    return sinks


def differ(case: Case, played: Played) -> str | None:
    """Return the first difference in words, or None."""
    expected, error = case.expected, case.error
    if error != played.error:
        return f"error: recorded {error}, got {played.error} {played.message}"
    if text(expected.get("init", [])) != text(played.init):
        return f"init: recorded {expected.get('init', [])}, got {played.init}"
    steps = case.steps
    if len(steps) != len(played.steps):
        return f"steps: recorded {len(steps)}, got {len(played.steps)}"
    for number, (one, other) in enumerate(zip(steps, played.steps, strict=True)):
        same = text(one) == text(other) or (number in played.ties and unordered(one) == unordered(other))
        if not same:
            return f"step {number}: recorded {one}, got {other}"
    for name, rows in expected.get("stores", {}).items() if not error else ():
        if text(rows) != text(played.stores.get(name)):
            return f"store {name}: recorded {rows}, got {played.stores.get(name)}"
    for name, value in played.metrics.items():
        if (known := expected.get("metrics", {}).get(name, value)) != value:
            return f"metric {name}: recorded {known}, got {value}"
    return None
