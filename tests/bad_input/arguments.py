"""Wrong arguments of the command line. ``~`` stands for a space inside an argument."""

from __future__ import annotations

from tests.bad_input.cases import Case


def _case(command: str, code: str, /, **facts: object) -> Case:
    return Case(f"`rewindow {command[:60]}`", command, code, facts)


CASES = [
    _case("fly", "command-line-invalid"),
    _case("run", "command-line-invalid"),
    _case("run counts --wrong", "command-line-invalid"),
    _case("land activity --keep some --new-generation", "command-line-invalid"),
    _case("run counts --through 25:00", "time-invalid", given="25:00"),
    _case("run counts --through ²", "time-invalid", given="²"),
    _case("run counts --through P1D", "time-not-point", given="P1D"),
    _case("run counts --through -1", "landing-number-invalid", given="-1"),
    _case("run counts --through 99999999999999999999", "landing-not-there-yet", landings=2),
    _case("land activity --until tomorrow", "time-invalid", given="tomorrow"),
    _case("backfill counts --from yesterday", "time-invalid", given="yesterday"),
    _case("run {{~params.job~}}", "template-unrendered", given="argument '{{ params.job }}'"),
    _case("backfill counts --from=1 --branch={{~b~}}", "template-unrendered"),
    _case("land activity --keep 1", "keep-without-new-generation"),
    _case("land ../activity", "config-file-missing", folder="feeds", name="../activity"),
    _case(f"land {'a' * 5_000}", "config-file-missing", folder="feeds"),
    _case("run counts\0", "config-file-missing", folder="jobs", name="counts\0"),
    _case("plan counts --target ../jobs/counts", "config-file-missing", folder="targets"),
    _case("run counts --branch ../main", "name-invalid", name="../main", kind="branch"),
    _case("show counts --branch ';DROP", "name-invalid", name="';DROP", kind="branch"),
    _case("backfill counts --from 1 --branch ~", "name-invalid", name=" ", kind="branch"),
    _case("rewind counts --to main/9", "run-unknown", run="main/9"),
    _case("rewind counts --to nothing", "run-unknown", run="nothing"),
    _case("rewind counts --to 1 --branch other", "branch-unknown", branch="other"),
    _case("backfill counts --from 1 --branch main", "main-not-backfilled"),
    _case("backfill counts --from main/7 --branch b2", "run-unknown", run="main/7"),
    _case("verify counts 0", "run-unknown", run="0"),
    _case("diff counts main other", "branch-not-run-yet", branch="other"),
    _case("promote counts main", "branch-unknown", branch="main"),
    _case("branch drop counts main", "main-not-droppable"),
    _case("branch drop counts other", "branch-unknown", branch="other"),
    _case("head counts --limit 0", "command-line-invalid"),
]
