"""The command: generate scenarios, play them on both, and count the verdicts."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.__main__ import summary
from tests.conformance.oracle.choices import choices
from tests.conformance.oracle.forms import FORMS, fresh
from tests.conformance.oracle.generate import generate, recorded
from tests.conformance.oracle.kafka import play
from tests.conformance.outcome import of_record
from tests.conformance.scenario import CARRIED, Case, read
from tests.conformance.verdict import FAILED, Verdict, judge


def recorded_differently() -> list[str]:
    """Play the scenarios of this repository on Kafka again, and return the names of those with another result."""
    cases = [case for file in sorted(CARRIED.glob("*.jsonl")) for case in read(file) if case.mode == "driver"]
    again = [Case("again", one["scenario"], one["expected"]) for one in play(case.scenario for case in cases)]
    return [case.name for case, new in zip(cases, again, strict=True) if of_record(case).difference(of_record(new))]


def still_deviates(verdicts: list[Verdict]) -> Iterator[bool]:
    """Play what deviates by D21 again, each sub-topology as a task of its own: then Kafka must give rewindow's rows."""
    cases = [verdict.case for verdict in verdicts if "D21" in verdict.number.split("+")]
    for one in play(as_separate_tasks(case.scenario) for case in cases):
        judged = judge(Case("separate tasks", one["scenario"], one["expected"]), cut=False)
        if judged.status == FAILED:
            print(f"FAILED {judged.case.name} with separate tasks: {judged.reason}")
        yield judged.status == FAILED


def as_separate_tasks(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the scenario with a task for each sub-topology and one record a step, so that D21 explains nothing.

    In a step of several records, Kafka's task takes what has arrived and does not wait for what another task sends it.
    """
    steps = [one for step in scenario["steps"] for one in _single(step)]
    return {**scenario, "steps": steps, "config": {**scenario.get("config", {}), "tasks": "separate"}}


def _single(step: dict[str, Any]) -> list[dict[str, Any]]:
    if "batch" not in step:
        return [step]
    return [{"pipe": one["topic"], **{name: one[name] for name in ("key", "value", "ts")}} for one in step["batch"]]


def main() -> int:
    """Play new scenarios on Kafka and on rewindow, whole and cut. Return 1 if one failed, or a recorded one has changed."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.oracle", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--like", default="", help="only vary scenarios of files whose names contain this")
    parser.add_argument("--form", choices=FORMS, help="make scenarios of this form instead of varying recorded ones")
    parser.add_argument("--choices", action="store_true", help="draw global joins, routes and partitioners instead")
    parser.add_argument("--keep", type=Path, help="write the scenarios with Kafka's results to this file")
    options = parser.parse_args()
    base = recorded(options.like)
    seed, count = options.seed, options.count
    if options.choices:
        made = choices(seed, count)
    else:
        made = fresh(options.form, seed, count) if options.form else generate(base, seed, count)
    played = play(made)
    if options.keep:
        options.keep.write_text("".join(json.dumps(one) + "\n" for one in played), encoding="utf-8")
    changed = recorded_differently()
    for name in changed:
        print(f"FAILED {name}: Kafka Streams now gives other rows than those in tests/conformance/vectors")
    cases = [Case(f"seed {options.seed}", one["scenario"], one["expected"]) for one in played]
    failed = len(changed)
    for mode in ("whole", "cut"):
        verdicts = [judge(case, cut=mode == "cut") for case in cases]
        failures = [verdict for verdict in verdicts if verdict.status == FAILED]
        for verdict in failures:
            print(f"FAILED {verdict.case.name}: {verdict.reason}")
        counts = {what: count for what, count in summary(verdicts).items() if what != "failed_names"}
        print(f"{mode}: {', '.join(f'{what} {count}' for what, count in counts.items())}")
        failed += len(failures)
        failed += sum(still_deviates(verdicts))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
