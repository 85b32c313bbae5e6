"""Code that gives an output other columns: `plan` and `backfill` ask for another table before anything is computed."""

from __future__ import annotations

import pytest

from tests.bad_input.scene import Bench

KEYED = """\
from typing import NamedTuple

from rewindow import StreamsBuilder


class By(NamedTuple):
    {key}: str


def build_topology():
    builder = StreamsBuilder()
    counts = builder.stream("events").group_by(lambda key, row: By(key), key=By).count(store="sums")
    counts.to_stream().to("totals")
    return builder.build()
"""
BACKFILL = ("backfill", "counts", "--from", "1", "--branch", "fix")
ANOTHER = "ame another table for totals in conf/jobs/counts.yaml, "


def _keyed(bench: Bench, key: str) -> None:
    bench.write("bench_job.py", KEYED.replace("{key}", key))


@pytest.fixture
def keyed(bench: Bench) -> Bench:
    """The output has the key ``member``."""
    _keyed(bench, "member")
    for words in (("reset", "counts", "--yes"), ("run", "counts")):
        assert bench.run(*words).code == 0
    return bench


def test_plan_and_backfill_ask_for_another_table_before_anything_is_computed(keyed: Bench) -> None:
    _keyed(keyed, "person")
    planned, refused = keyed.run("plan", "counts"), keyed.run(*BACKFILL)
    assert (planned.code, refused.code) == (76, 76), (planned, refused)
    changed = "output totals has other columns than alerts/totals: member (string) is gone, person (string) is new"
    assert changed in planned.err
    assert f"or n{ANOTHER}recompute on a branch" in planned.err
    assert changed in refused.err
    assert f"N{ANOTHER}then backfill" in refused.err
    for answer in (planned, refused):
        assert "`key=`, where the code makes the key, declares member; `key=STREAM.key` takes it over" in answer.err
    assert "fix" not in keyed.run("branch", "list", "counts").out
    keyed.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.people")
    planned = keyed.run("plan", "counts")
    assert "[job-changed-since-checkpoint]" in planned.err
    assert "output totals has another table: alerts/people, was alerts/totals" in planned.err
    assert "ame another table" not in planned.err
    done = keyed.run(*BACKFILL)
    assert done.code == 0, done
    assert "The keys of totals have other columns than on main, so `rewindow diff` cannot compare them." in done.out
    assert "rewindow diff counts" not in done.out
    assert "--diff" not in done.out
    compared = keyed.run("diff", "counts", "main", "fix")
    assert compared.code == 2
    assert "[diff-key-types-differ]" in compared.err
    assert "the key column 'person' is missing in one" in compared.err
    for words in (("promote", "counts", "fix"), ("plan", "counts")):
        answer = keyed.run(*words)
        assert answer.code == 0, answer


def test_a_refused_backfill_keeps_the_earlier_runs_of_its_branch(keyed: Bench) -> None:
    _keyed(keyed, "person")
    keyed.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.people")
    assert keyed.run(*BACKFILL).code == 0
    before = keyed.run("branch", "list", "counts").out
    rows = keyed.run("head", "counts", "--branch", "fix").out
    _keyed(keyed, "human")
    refused = keyed.run(*BACKFILL)
    assert refused.code == 76, refused
    assert "[output-columns-changed]" in refused.err
    assert (
        "alerts/people__fix, the table of branch 'fix': person (string) is gone, human (string) is new" in refused.err
    )
    assert "Backfill on another branch; or name another table" in refused.err
    assert keyed.run("branch", "list", "counts").out == before
    assert keyed.run("head", "counts", "--branch", "fix").out == rows
    keyed.edit("conf/jobs/counts.yaml", "alerts.people", "alerts.humans")
    again = keyed.run(*BACKFILL)
    assert again.code == 0, again
    assert "the branch starts over" in again.out
    assert keyed.run("promote", "counts", "fix").code == 0


def test_columns_of_another_type_or_order_are_named(keyed: Bench) -> None:
    typed = (
        KEYED.replace("{key}", "member")
        .replace("    member: str", "    member: int")
        .replace("By(key)", "By(len(key))")
    )
    keyed.write("bench_job.py", typed)
    assert "alerts/totals: member is long, was string. " in keyed.run(*BACKFILL).err


def test_a_branch_takes_columns_in_another_order_when_it_starts_over(keyed: Bench) -> None:
    def ordered(fields: str) -> None:
        text = KEYED.replace("{key}", "member").replace("class By", f"class Pair(NamedTuple):\n{fields}\n\nclass By")
        keyed.write(
            "bench_job.py", text.replace(".to_stream()", ".to_stream().map_values(lambda n: Pair(1, 2), value=Pair)")
        )

    keyed.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.pairs")
    for fields in ("    a: int\n    b: int\n", "    b: int\n    a: int\n"):
        ordered(fields)
        answer = keyed.run(*BACKFILL)
        assert answer.code == 0, answer
    assert "the branch starts over" in answer.out
    assert keyed.run("promote", "counts", "fix").code == 0
