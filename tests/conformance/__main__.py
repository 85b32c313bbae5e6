"""The command: play files of scenarios and count the verdicts."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from tests.conformance.listed import listed_deviations
from tests.conformance.scenario import Case, MalformedError, read
from tests.conformance.verdict import DEVIATING, FAILED, NOT_PLAYED, PASSED, Verdict, judge, judge_on_spark


def main(arguments: list[str] | None = None) -> int:
    """Play the files and print the verdicts. Return 1 if a scenario failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="scenarios with their recorded results")
    parser.add_argument(
        "--mode",
        choices=("whole", "cut", "spark"),
        default="whole",
        help="cut: restore between every two steps; spark: through Spark and Delta, in one run and in several",
    )
    parser.add_argument("--internals", action="store_true", help="also compare the buffers and metrics of suppress")
    parser.add_argument("--unlisted", action="store_true", help="print deviations that deviations.yaml does not list")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args(arguments)
    if absent := [str(file) for file in options.files if not file.is_file()]:
        parser.error(f"no such file: {', '.join(absent)}")
    try:
        cases = [case for file in options.files for case in read(file)]
    except MalformedError as malformed:
        parser.error(str(malformed))
    verdicts = (
        on_spark(cases)
        if options.mode == "spark"
        else [judge(case, cut=options.mode == "cut", internals=options.internals) for case in cases]
    )
    if options.unlisted:
        unlisted(verdicts)
    elif options.json:
        print(json.dumps(summary(verdicts)))
    else:
        report(verdicts)
    return 1 if any(verdict.status == FAILED for verdict in verdicts) else 0


def on_spark(cases: list[Case]) -> list[Verdict]:
    """Play cases through Spark and Delta, on a session for these cases only."""
    from tests.conformance.session import spark_engine

    with spark_engine() as engine:
        return [judge_on_spark(case, engine) for case in cases]


def summary(verdicts: list[Verdict]) -> dict[str, object]:
    """Return the counts by verdict, and the names of the failed scenarios."""
    by_status = Counter(verdict.status for verdict in verdicts)
    return {
        "passed": by_status[PASSED],
        "failed": by_status[FAILED],
        # Each scenario counts once, under its first number.
        "deviating": dict(sorted(Counter(v.number.split("+")[0] for v in verdicts if v.status == DEVIATING).items())),
        "not_played": by_status[NOT_PLAYED],
        "failed_names": [verdict.case.name for verdict in verdicts if verdict.status == FAILED],
    }


def unlisted(verdicts: list[Verdict]) -> None:
    """Print the proven deviations that are not listed, as entries for the list. A person must write the reasons."""
    listed = listed_deviations()
    for verdict in verdicts:
        case, number = verdict.case, verdict.number
        if verdict.status == DEVIATING and (case.file, case.name) not in listed:
            print(
                f"- {{file: {case.file}, scenario: {case.name}, number: {number}, reason: *{number.lower().replace('+', '_')}}}"
            )


def report(verdicts: list[Verdict]) -> None:
    """Print the counts, and every scenario that does not pass, as text."""
    listed = listed_deviations()
    for verdict in verdicts:
        where = f"{verdict.case.file}: {verdict.case.name}"
        if verdict.status == FAILED:
            print(f"FAILED     {where}: {verdict.reason}")
        elif verdict.status == DEVIATING:
            known = "" if (verdict.case.file, verdict.case.name) in listed else " (not listed in deviations.yaml)"
            print(f"deviating  {where}: by {verdict.number}{known}")
    missing = Counter(verdict.reason for verdict in verdicts if verdict.status == NOT_PLAYED)
    for operator, count in missing.most_common():
        print(f"not played {count}: {operator}")
    print(", ".join(f"{what} {count}" for what, count in summary(verdicts).items() if what != "failed_names"))


if __name__ == "__main__":
    sys.exit(main())
