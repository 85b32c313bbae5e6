"""The outcome of a scenario in one form for Kafka, the engine and the naive twin, and the comparison of two outcomes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests import oracle
from tests.conformance.played import Played
from tests.conformance.scenario import Case, comparable
from tests.oracle.twin import Result


@dataclass(frozen=True)
class Outcome:
    """What each step sent (of a partition group: its visible state), the step of an error (-1: building), and the stores."""

    steps: list[Any]
    error: int | None = None
    stores: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    init: list[dict[str, Any]] = field(default_factory=list)

    def difference(self, other: Outcome) -> str:
        """Describe the first difference, or return an empty text. The order of records counts. Of stores, common ones count."""
        if self.error != other.error:
            return f"error: {self.error}, {other.error}"
        if text(self.init) != text(other.init):
            return f"init: {self.init}, {other.init}"
        if len(self.steps) != len(other.steps):
            return f"{len(self.steps)} steps, {len(other.steps)}"
        for number, (one, another) in enumerate(zip(self.steps, other.steps, strict=True)):
            if text(one) != text(another):
                return f"step {number}: {one}, {another}"
        for name in () if self.error is not None else self.stores.keys() & other.stores.keys():
            if unordered(self.stores[name]) != unordered(other.stores[name]):
                return f"store {name}: {self.stores[name]}, {other.stores[name]}"
        return ""


def of_record(case: Case) -> Outcome:
    """Return what Kafka gave."""
    return Outcome(case.steps, _error_step(case.error), case.expected.get("stores", {}), case.expected.get("init", []))


def of_engine(played: Played) -> Outcome:
    """Return what the engine gave."""
    return Outcome(played.steps, _error_step(played.error), played.stores, played.init)


def of_twin(case: Case, switches: frozenset[str]) -> Outcome:
    """Return the outcome of the naive twin with these switches at Kafka's rule."""
    rules = oracle.Rules(switches)
    if case.mode == "partition_group":
        return of_group(case, rules)
    return of_result(case, oracle.play(case.scenario, rules))


def of_group(case: Case, rules: oracle.Rules) -> Outcome:
    """Return the outcome of a twin's partition group."""
    return Outcome(*oracle.play_group(case.scenario, rules))


def of_result(case: Case, twin: Result) -> Outcome:
    """Return the outcome of a twin that has played a case."""
    steps = [comparable(case.scenario, step) for step in twin.steps]
    return Outcome(steps, twin.error_step, twin.stores, twin.init)


def text(data: Any) -> str:
    """Return JSON data as text for comparison, because 1 == 1.0 in Python."""
    return json.dumps(data, sort_keys=True)


def unordered(step: Any) -> Any:
    """Return a step with its records sorted, so that their order does not count."""
    if isinstance(step, list):
        return sorted(text(one) for one in step)
    return {name: unordered(value) if isinstance(value, list) else text(value) for name, value in step.items()}


def _error_step(error: tuple[str, int | None] | None) -> int | None:
    return None if error is None else -1 if error[1] is None else error[1]
