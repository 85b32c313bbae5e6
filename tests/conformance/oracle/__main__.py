"""The command: generate scenarios, play them on both, and count the verdicts."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.conformance.__main__ import summary
from tests.conformance.oracle.choices import choices
from tests.conformance.oracle.generate import generate
from tests.conformance.oracle.kafka import play
from tests.conformance.scenario import Case, read, vector_files
from tests.conformance.verdict import FAILED, judge


def main() -> int:
    """Play new scenarios on Kafka and on rewindow, whole and cut. Return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.oracle", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--like", default="", help="only vary scenarios of files whose names contain this")
    parser.add_argument("--choices", action="store_true", help="draw global joins, routes and partitioners instead")
    parser.add_argument("--keep", type=Path, help="write the scenarios with Kafka's results to this file")
    options = parser.parse_args()
    files = [file for file in vector_files() if options.like in file.stem]
    base = [case.scenario for file in files for case in read(file) if case.mode == "driver"]
    made = choices(options.seed, options.count) if options.choices else generate(base, options.seed, options.count)
    played = play(made)
    if options.keep:
        options.keep.write_text("".join(json.dumps(one) + "\n" for one in played), encoding="utf-8")
    cases = [Case(f"seed {options.seed}", one["scenario"], one["expected"]) for one in played]
    failed = 0
    for mode in ("whole", "cut"):
        verdicts = [judge(case, cut=mode == "cut") for case in cases]
        failures = [verdict for verdict in verdicts if verdict.status == FAILED]
        for verdict in failures:
            print(f"FAILED {verdict.case.name}: {verdict.reason}")
        counts = {what: count for what, count in summary(verdicts).items() if what != "failed_names"}
        print(f"{mode}: {', '.join(f'{what} {count}' for what, count in counts.items())}")
        failed += len(failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
