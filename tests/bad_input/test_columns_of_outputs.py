"""Code that gives an output other columns: `plan` and `backfill` ask for another table before anything is computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of, topology
from tests.refusals import containing

KEYED = topology(
    """
counts = builder.stream("events").group_by(lambda key, row: By(key), key=By).count(store="sums")
counts.to_stream().to("totals")
""",
    before="from typing import NamedTuple\n\n\nclass By(NamedTuple):\n    {key}: str\n",
)
BACKFILL = "backfill counts --from 1 --branch fix"


def _keyed(bench: Bench, key: str) -> None:
    bench.write("bench_job.py", KEYED.replace("{key}", key))


@pytest.fixture(scope="module")
def keyed_template(template: Bench) -> Bench:
    """The output has the key ``member``."""
    _keyed(template, "member")
    template.done("reset counts --yes", "run counts")
    return template


@pytest.fixture
def keyed(keyed_template: Bench, tmp_path: Path) -> Bench:
    return copy_of(keyed_template, tmp_path / "project")


def test_plan_and_backfill_ask_for_another_table_before_anything_is_computed(keyed: Bench) -> None:
    _keyed(keyed, "person")
    columns, keep = "member (string) is gone, person (string) is new", containing("`key=STREAM.key`")
    keyed.refuses("plan counts", "job-changed-since-checkpoint", effects=containing(columns), replay=keep)
    keyed.refuses(BACKFILL, "branch-not-promotable", reason=containing(columns), keep_key=keep)
    assert [one["branch"] for one in keyed.json("branch list counts")["branches"]] == ["main"]
    keyed.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.people")
    moved = containing("output totals has another table: alerts/people, was alerts/totals")
    keyed.refuses("plan counts", "job-changed-since-checkpoint", effects=moved)
    assert "rewindow diff counts" not in keyed.done(BACKFILL).out, "the keys cannot be compared"
    keyed.refuses("diff counts main fix", "diff-key-types-differ", column="person")
    keyed.done("promote counts fix", "plan counts")


def test_a_refused_backfill_keeps_the_earlier_runs_of_its_branch(keyed: Bench) -> None:
    _keyed(keyed, "person")
    keyed.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.people")
    keyed.done(BACKFILL)
    shown = ("branch list counts", "head counts --branch fix")
    before = [keyed.json(line) for line in shown]
    _keyed(keyed, "human")
    keyed.refuses(BACKFILL, "output-columns-changed", table="alerts/people__fix", branch="fix")
    assert [keyed.json(line) for line in shown] == before
    keyed.edit("conf/jobs/counts.yaml", "alerts.people", "alerts.humans")
    keyed.done(BACKFILL, "promote counts fix")


def test_columns_of_another_type_are_named(keyed: Bench) -> None:
    typed = KEYED.replace("{key}", "member").replace("    member: str", "    member: int")
    keyed.write("bench_job.py", typed.replace("By(key)", "By(len(key))"))
    keyed.refuses(BACKFILL, "branch-not-promotable", reason=containing("member is long, was string"))


def test_a_branch_takes_columns_in_another_order_when_it_starts_over(keyed: Bench) -> None:
    keyed.edit("conf/jobs/counts.yaml", "alerts.totals", "alerts.pairs")
    for fields in ("    a: int\n    b: int\n", "    b: int\n    a: int\n"):
        text = KEYED.replace("{key}", "member").replace("class By", f"class Pair(NamedTuple):\n{fields}\n\nclass By")
        keyed.write(
            "bench_job.py", text.replace(".to_stream()", ".to_stream().map_values(lambda n: Pair(1, 2), value=Pair)")
        )
        keyed.done(BACKFILL)
    keyed.done("promote counts fix")
