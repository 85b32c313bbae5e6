"""What commands list is complete, or they say what is left out; and what they count, they name."""

from __future__ import annotations

import re

import pytest

from rewindow.app.api.project import Project
from rewindow.streams.duration import to_ms
from tests.bad_input.scene import USERS, Bench, copy_of, hour
from tests.ingest.local_engine import HOUR, T0

MINUTE = 60_000


@pytest.fixture(scope="module")
def branched(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A project with a branch on which every key has another count."""
    bench = copy_of(template, tmp_path_factory.mktemp("branched") / "project")
    bench.edit(
        "bench_job.py", ".group_by_key()", '.flat_map_values(lambda value: [value, value], name="twice").group_by_key()'
    )
    bench.done("backfill counts --from 1 --branch fix")
    return bench


def test_diff_the_report_and_the_notebook_say_how_many_of_the_keys_that_differ_they_show(branched: Bench) -> None:
    whole = branched.json("diff counts main fix --samples 1000")["totals"]
    apart = whole["different"] + whole["only_first"] + whole["only_second"]
    assert (len(whole["samples"]), whole["not_shown"]) == (apart, 0)
    assert apart > 5
    few = branched.json("diff counts main fix --samples 2")["totals"]
    assert (len(few["samples"]), few["not_shown"]) == (2, apart - 2)
    assert f"`--samples {apart}` shows all" in branched.run(*["diff", "counts", "main", "fix", "--samples", "2"]).out
    page = branched.root / "page.html"
    branched.done(f"report counts --branch fix --diff main --out {page}")
    assert f"5 of {apart} keys of totals that differ" in page.read_text(encoding="utf-8")
    shown = Project.load(branched.root).diff("counts", "fix", samples=3)._repr_html_()
    assert f"`samples={apart}` shows all" in shown


def test_verify_names_what_it_counts_as_show_does(template: Bench) -> None:
    answer = template.done("verify counts")
    told = re.search(r"reproduced all (\d+) rows that it wrote: (.*)\.", answer.out)
    assert told is not None, answer.out
    counts = {target: int(rows) for rows, target in (part.split(" of ") for part in told[2].split(", "))}
    assert sum(counts.values()) == int(told[1])
    assert next(iter(counts)) == "output/totals"
    shown = template.json("show counts")
    assert counts["output/totals"] == shown["runs"][-1]["rows"]
    assert counts.keys() - {"metrics"} <= {table["table"] for table in shown["tables"]}


def test_the_grace_that_late_records_needed_is_listed_by_duration(bench: Bench) -> None:
    late = [T0 + 2 * MINUTE, T0 + 2 * HOUR + 2 * MINUTE, T0 + 2 * HOUR + 32 * MINUTE]
    rows = [{"user": "ann", "t": time, "got": T0 + 3 * HOUR + 17 * MINUTE + n, "x": n} for n, time in enumerate(late)]
    bench.rows("h9", [*hour(2), *rows, *hour(3)])
    bench.done("land activity", "run counts")
    metrics = bench.json("show counts")["metrics"]
    reasons = [one["reason"].removeprefix("up-to-") for one in metrics if one["metric"] == "grace-needed"]
    assert len(reasons) >= 3
    assert reasons == sorted(reasons, key=to_ms)
    assert reasons != sorted(reasons), f"{reasons}: the order of texts would be the same"


def test_a_comparison_of_states_says_what_it_leaves_out(template: Bench) -> None:
    answer = template.run(*["state", "diff", "counts", "sums", "1", "2", "--limit", "1"])
    assert (answer.code, "Use --limit to show more." in answer.out) == (1, True)


def test_why_says_how_many_rows_of_a_key_it_leaves_out(bench: Bench) -> None:
    for number in range(2, 14):
        bench.rows(f"h{number}", hour(number))
    bench.done("land activity", "run counts")
    out = bench.done(f"why totals {USERS[0]}").out
    others = int(re.findall(r"The key has (\d+) other rows", out)[0])
    listed = out.split("choose:\n")[1].splitlines()
    assert others > 20
    assert listed[-1] == f"  and {others - len(listed) + 1} more, which are older"


def test_ls_says_that_a_reason_has_more_lines(bench: Bench) -> None:
    bench.edit("bench_job.py", 'TimeWindows.of("30m", grace="5m")', 'TimeWindows.of("20m", grace="5m")')
    (job,) = bench.json("ls")["jobs"]
    assert "\n" in job["detail"]
    assert "with --json)" in " ".join(bench.done("ls").out.split())
