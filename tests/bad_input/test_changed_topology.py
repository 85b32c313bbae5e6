"""A topology that changed is refused by `run` and `plan` at once, not only when new data has landed."""

from __future__ import annotations

import pytest

from tests.bad_input.scene import Bench

WINDOW = 'TimeWindows.of("30m", grace="5m")'


@pytest.mark.parametrize("line", ["run counts", "plan counts --through 1"])
def test_without_new_data_a_changed_topology_is_refused(bench: Bench, line: str) -> None:
    bench.done(line)
    bench.edit("bench_job.py", WINDOW, WINDOW.replace("30m", "60m"))
    bench.refuses(line, "job-changed-since-checkpoint", job="counts", run="main/2")
    bench.edit("bench_job.py", WINDOW.replace("30m", "60m"), WINDOW)
    bench.done(line)


ADDED = """\
    from ticks import Ticks

    builder.stream("events").process(lambda: Ticks(), name="ticks")
    return builder.build()
"""
FOREIGN = """\
    table, others = builder.table("events", store="table"), builder.stream("events").repartition(name="others")
    table.join(others.to_table(store="other"), max, foreign_key=lambda _key, row: row.usr, store="joined")
    return builder.build()
"""


@pytest.mark.parametrize("line", ["run counts", "plan counts"])
def test_a_misspelt_field_in_changed_code_is_named_before_the_change_is(bench: Bench, line: str) -> None:
    bench.edit("conf/jobs/counts.yaml", "on_code_change: accept\n", "")
    bench.edit("bench_job.py", "    return builder.build()\n", FOREIGN)
    bench.refuses(line, "unknown-attribute", field="usr")
    bench.edit("bench_job.py", "row.usr", "row.x")
    bench.refuses(line, "job-changed-since-checkpoint")


TICKS = """\
from rewindow import Processor, PunctuationType
from rewindow.streams.punctuation import PunctuationType as Types

STREAM = Types.STREAM_TIME


class Ticks(Processor):
    def init(self, context):
        self.context = context
        context.schedule("5s", PunctuationType.STREAM_TIME, self.tick, name="named")
        context.schedule("5s", STREAM, self.tick, name="by another name")
        context.schedule("5s", type=STREAM, callback=self.tick, name="by keyword", args=("start_time",))
        context.schedule("5s", STREAM, self.tick, name="on a grid", start_time="0s")
        context.schedule("5s", STREAM, self.tick, name="shifted", time_shift="2s")
        context.schedule("5s", Types.WALL_CLOCK_TIME, self.tick, name="wall clock")

    def tick(self, now_ms): ...


def unused(context):
    context.schedule("5s", STREAM, print)


"""


def test_plan_names_the_schedules_that_are_not_on_kafkas_grid(bench: Bench) -> None:
    assert bench.json("plan counts")["unaligned_schedules"] == []
    bench.write("ticks.py", TICKS)
    bench.edit("bench_job.py", "    return builder.build()\n", ADDED)
    assert bench.json("plan counts --branch trial")["unaligned_schedules"] == [
        "ticks.py:10",
        "ticks.py:11",
        "ticks.py:12",
    ]
    assert bench.done("plan counts --branch trial").out.count("ticks.py:10, ticks.py:11, ticks.py:12") == 1


def test_a_change_that_the_job_accepts_is_planned_and_shown_and_needs_no_option(bench: Bench) -> None:
    bench.edit("bench_job.py", "row.x * 2", "row.x * 3")
    assert any("score" in change for change in bench.json("plan counts")["changed"])
    assert "score" in bench.done("run counts --accept-changes").out
    bench.done("run counts")


def test_a_change_that_only_the_call_accepts_is_refused_by_the_next_run(bench: Bench) -> None:
    job = bench.root / "conf/jobs/counts.yaml"
    job.write_text(job.read_text() + "semantics: {stream_time_from: watermark}\n")
    bench.refuses("run counts", "job-changed-since-checkpoint")
    assert "--accept-changes" in bench.done("run counts --accept-changes").out
    bench.refuses("run counts", "job-changed-since-checkpoint")


def test_plan_and_run_refuse_other_landings_alike(bench: Bench) -> None:
    """The feed was landed anew: what the branch replayed may be outdated, whatever time bounds the request."""
    bench.edit("conf/feeds/activity.yaml", "partitions: 2", "partitions: 3")
    bench.done("land activity --new-generation")
    for bound in ("", " --through 2099-01-01", " --through 1999-01-01"):
        assert [bench.run(*f"{command} counts{bound}".split()).code for command in ("plan", "run")] == [66, 66], bound


def test_planning_changes_nothing(bench: Bench) -> None:
    bench.done("land activity")
    before = bench.files()
    bench.done("plan counts --branch trial", "plan counts")
    assert bench.files() == before


def test_what_a_failed_attempt_accepted_is_not_accepted_of_a_second_edit(bench: Bench) -> None:
    bench.edit("conf/jobs/counts.yaml", "on_code_change: accept\n", "")
    bench.done("land activity")
    bench.code("def score(row):\n    return 1 / 0\n")
    bench.refuses("run counts --accept-changes", "node-failed")
    bench.refuses("run counts", "node-failed")  # the same code: this goes on with the plan that accepted it
    bench.code("def score(row):\n    return 1\n")
    assert bench.run("run", "counts").code == 76
    bench.done("run counts --accept-changes")
