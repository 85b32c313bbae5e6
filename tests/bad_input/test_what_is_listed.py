"""What commands list is complete, or they say what is left out; and what they count, they name."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rewindow.app.api.project import Project
from rewindow.streams.duration import to_ms
from tests.bad_input.scene import USERS, Bench, copy_of, hour
from tests.ingest.local_engine import HOUR, T0

MINUTE = 60_000


def other_branch(template: Bench, folder: Path) -> Bench:
    """Return a project with a branch on which every key has another count."""
    bench = copy_of(template, folder)
    bench.edit(
        "bench_job.py", ".group_by_key()", '.flat_map_values(lambda value: [value, value], name="twice").group_by_key()'
    )
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    return bench


def test_diff_says_how_many_of_the_keys_that_differ_it_shows(template: Bench, tmp_path: Path) -> None:
    bench = other_branch(template, tmp_path / "project")
    whole = json.loads(bench.run("diff", "counts", "main", "fix", "--samples", "1000", "--json").out)["totals"]
    apart = whole["different"] + whole["only_first"] + whole["only_second"]
    assert (len(whole["samples"]), whole["not_shown"]) == (apart, 0)
    assert apart > 2
    answer = bench.run("diff", "counts", "main", "fix", "--samples", "2")
    assert answer.code == 1
    assert sum(line.startswith("totals user=") for line in answer.out.splitlines()) == 2
    assert f"totals: 2 of {apart} keys that differ are shown; `--samples {apart}` shows all." in answer.out
    cut = json.loads(bench.run("diff", "counts", "main", "fix", "--samples", "2", "--json").out)["totals"]
    assert (len(cut["samples"]), cut["not_shown"]) == (2, apart - 2)
    all_of_them = bench.run("diff", "counts", "main", "fix", "--samples", str(apart)).out
    assert "are shown" not in all_of_them
    assert bench.run("diff", "counts", "main", "fix", "--samples", "-1").code == 2


def test_the_report_and_the_notebook_say_how_many_of_the_keys_that_differ_they_show(
    template: Bench, tmp_path: Path
) -> None:
    bench = other_branch(template, tmp_path / "project")
    whole = json.loads(bench.run("diff", "counts", "fix", "main", "--samples", "0", "--json").out)["totals"]
    apart = whole["not_shown"]
    assert apart > 5
    page = tmp_path / "page.html"
    assert bench.run("report", "counts", "--branch", "fix", "--diff", "main", "--out", str(page)).code == 0
    assert f"5 of {apart} keys of totals that differ" in page.read_text(encoding="utf-8")
    shown = Project.load(bench.root).diff("counts", "fix", samples=3)._repr_html_()
    assert f"totals: 3 of {apart} keys that differ are shown; `samples={apart}` shows all" in shown


def test_verify_names_what_it_counts_as_show_does(template: Bench) -> None:
    answer = template.run("verify", "counts")
    assert answer.code == 0, answer
    told = re.search(r"reproduced all (\d+) rows that it wrote: (.*)\.", answer.out)
    assert told is not None, answer.out
    counts = {target: int(rows) for rows, target in (one.split(" of ") for one in told[2].split(", "))}
    assert sum(counts.values()) == int(told[1])
    assert next(iter(counts)) == "output/totals"
    shown = json.loads(template.run("show", "counts", "--json").out)
    assert counts["output/totals"] == shown["runs"][-1]["rows"]
    assert counts.keys() - {"metrics"} <= {table["table"] for table in shown["tables"]}


def test_the_grace_that_late_records_needed_is_listed_by_duration(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    late = [T0 + 2 * MINUTE, T0 + 2 * HOUR + 2 * MINUTE, T0 + 2 * HOUR + 32 * MINUTE]
    rows = [{"user": "ann", "t": time, "got": T0 + 3 * HOUR + 17 * MINUTE + n, "x": n} for n, time in enumerate(late)]
    bench.rows("h9", [*hour(2), *rows, *hour(3)])
    assert bench.run("land", "activity").code == 0
    assert bench.run("run", "counts").code == 0
    metrics = json.loads(bench.run("show", "counts", "--json").out)["metrics"]
    reasons = [one["reason"].removeprefix("up-to-") for one in metrics if one["metric"] == "grace-needed"]
    assert len(reasons) >= 3
    assert reasons == sorted(reasons, key=to_ms)
    assert reasons != sorted(reasons), f"{reasons}: the order of texts would be the same"


def test_a_comparison_of_states_says_what_it_leaves_out(template: Bench) -> None:
    answer = template.run("state", "diff", "counts", "sums", "1", "2", "--limit", "1")
    assert answer.code == 1
    count = int(re.findall(r"(\d+) keys differ", answer.out)[0])
    assert f"1 of {count} keys. Use --limit to show more." in answer.out


def test_why_says_how_many_rows_of_a_key_it_leaves_out(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    for number in range(2, 14):
        bench.rows(f"h{number}", hour(number))
    assert bench.run("land", "activity").code == 0
    assert bench.run("run", "counts").code == 0
    answer = bench.run("why", "totals", USERS[0])
    assert answer.code == 0, answer
    others = int(re.findall(r"The key has (\d+) other rows", answer.out)[0])
    listed = answer.out.split("choose:\n")[1].splitlines()
    assert others > 20
    assert listed[-1] == f"  and {others - len(listed) + 1} more, which are older"


def test_ls_says_that_a_reason_has_more_lines(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.edit("bench_job.py", 'TimeWindows.of("30m", grace="5m")', 'TimeWindows.of("20m", grace="5m")')
    (job,) = json.loads(bench.run("ls", "--json").out)["jobs"]
    assert "\n" in job["detail"]
    said = " ".join(bench.run("ls").out.split())
    assert "more line" in said
    assert "with --json)" in said
