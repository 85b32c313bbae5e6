"""Health: whatever the inputs are, each renderer shows the same fact, and what is unknown is never shown as good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.health import findings
from rewindow.control.health.findings import Level
from rewindow.control.health.inputs import FeedRules, Inputs, Unknown
from rewindow.control.health.job_health import JobHealth, branch_entry, job_health
from rewindow.control.health.phrases import Command
from rewindow.control.health.waiting_results import Cause, open_windows, stalled
from rewindow.control.ingest.landings import Feed, LandedRange, Landing
from rewindow.control.plan.explain import describe_plan, explain
from rewindow.control.plan.job_fold import COMMIT, fold
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.planner import UpToDate, plan_run
from rewindow.control.plan.sequence import History
from rewindow.control.plan.spec import RunRequest, RunSpec
from rewindow.errors import ReasonMessage
from rewindow.report.figures import progress
from rewindow.report.gather_report import gather
from rewindow.report.report_facts import Level as ReportLevel
from rewindow.report.report_facts import Outlook, Sentence, Verification
from rewindow.streams.record import UNKNOWN, TopicPartition
from rewindow.streams.timing import TimedNode
from tests.control.ledgers import BINDING, HOUR, TOPIC, a_feed, an_attempt, commit_of, plan_row

SUPPRESS = TimedNode(
    node="closed",
    sub_topology=0,
    store="sums",
    kind="buffer",
    final_after_ms=HOUR // 4,
    durations={"grace": HOUR // 4},
    sends_nulls=False,
    topics=(TOPIC,),
    spans={"size": HOUR, "advance": HOUR, "grace": HOUR // 4},
)
HOLDING = replace(BINDING, timed=(SUPPRESS,))
COMMAND = Command("counts", "local")
REASON = Unknown("a test did not read it")


def nothing(text: str) -> ReasonMessage:
    return ReasonMessage("all-epochs-taken", text)


def task_state(clock, held):
    """Return the small state of a task: its clocks, and how many results the suppress holds."""
    clocks = {"stream_time_ms": clock, "wall_clock_ms": clock, "node_times": {"closed": clock}}
    return {**clocks, "schedules": [], "held": {"sums": held}}


@dataclass(frozen=True)
class Scene:
    """A branch, and what a command has read of it."""

    state: JobState
    feed: Feed
    inputs: Inputs

    @property
    def health(self) -> JobHealth:
        return job_health(self.inputs, self.state)

    def plan(self) -> dict[str, Any]:
        """Return the plan of a command that has read the same."""
        health = self.health
        described = describe_plan(self.state, self.feed, UpToDate(nothing("nothing is left")), "main", HOLDING)
        is_known = not isinstance(health.stalled, Unknown)
        found = [one.as_json() for one in health.stalled] if not isinstance(health.stalled, Unknown) else []
        return described | {"silent": found, "unknown": [] if is_known else list(health.unknown())}

    def verdict(self) -> Sequence[Sentence]:
        """Return the verdict of a report on the branch."""
        report = gather(
            self.inputs,
            self.health,
            ledger="",
            selection="all",
            made_at_ms=0,
            version="0",
            outlook=Outlook("Nothing to run"),
            verification=Verification(),
        )
        return report.verdict


def committed(feed: Feed, through: int) -> list[LedgerRow]:
    spec = plan_run(fold([]), feed, RunRequest(through_landing=through), HOLDING, an_attempt("a"), lambda _: False)
    assert isinstance(spec, RunSpec)
    row = plan_row(spec)
    return [row, LedgerRow(2, COMMIT, commit_of(fold([row]), spec).as_json())]


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Draw a feed of two topics, of which the job reads one, a run over some of its landings, and the clocks after it."""
    landings: list[Landing] = []
    tps = [TopicPartition(topic, partition) for topic in (TOPIC, "other") for partition in (0, 1)]
    before = {tp: LandedRange(0, 0, UNKNOWN, 0) for tp in tps}
    watermark_ms = UNKNOWN
    for number in range(1, draw(st.integers(1, 4)) + 1):
        ranges = {}
        for tp, last in before.items():
            rows = draw(st.integers(0, 3))
            newest = max(last.max_timestamp, draw(st.integers(0, 8)) * HOUR // 2) if rows else last.max_timestamp
            end = last.end + rows
            ranges[tp] = LandedRange(last.end, end, newest, draw(st.integers(last.release, end)))
        newest = max(landed.max_timestamp for landed in ranges.values())
        watermark_ms = max(watermark_ms, draw(st.sampled_from([newest, newest - HOUR, UNKNOWN])))
        given_up = tuple(tp for tp in tps if draw(st.integers(0, 9)) == 0)
        landings.append(Landing(number, 1, watermark_ms, ranges, idle=given_up))
        before = ranges
    feed = Feed(a_feed(0).definition, History(landings))
    rows = committed(feed, draw(st.integers(1, len(landings))))
    state = fold(rows)
    branch = state.branch("main")
    head = branch.runs[-1]
    reports = [
        TaskReport(0, partition, (), task_state(clock, held), (), {})
        for partition in (0, 1)
        for clock in [draw(st.sampled_from([UNKNOWN, 0, HOUR, 2 * HOUR]))]
        for held in [draw(st.integers(0, 2))]
    ]
    rules = FeedRules(draw(st.sampled_from([0, HOUR])), frozenset({TOPIC, "other"}))
    inputs = Inputs(branch, feed, [head], lambda: rules, {head.spec.run: reports}, lagging={})
    return Scene(state, feed, inputs)


@given(scenes())
def test_each_renderer_shows_the_same_landings_records_and_results(scene: Scene) -> None:
    health, plan = scene.health, scene.plan()
    entry = branch_entry(scene.state, scene.feed, "main", lambda: UpToDate("x"), dict)
    done = progress(scene.inputs, health)
    assert plan["waiting"] == list(health.waiting)
    assert entry.waiting == done.waiting_landings == len(health.waiting)
    assert sum(held["records"] for held in plan["held"]) == sum(held.records for held in health.held)
    assert {held["topic"] for held in plan["held"]} <= {TOPIC}, "the job does not read the other topic"
    assert done.held == health.held
    assert not isinstance(health.stalled, Unknown)
    whats = [one.what for one in health.stalled]
    assert [one["what"] for one in plan["silent"]] == whats
    assert [line for line in explain(plan) if any(what in line for what in whats)] == [
        f"{one}." for one in health.stalled
    ]
    assert [one.message for one in findings.stalled_results(health.stalled, None, COMMAND)] == whats
    told = [sentence.text for sentence in scene.verdict()]
    assert all(str(one) in told for one in health.stalled)


@given(scenes())
def test_the_feeds_file_is_read_once_at_most_and_for_each_result_that_waits(scene: Scene) -> None:
    reads: list[FeedRules | Unknown] = []

    def read_rules() -> FeedRules | Unknown:
        reads.append(scene.inputs.rules)
        return scene.inputs.rules

    found = stalled(replace(scene.inputs, read_rules=read_rules))
    assert found == scene.health.stalled
    assert len(reads) == 1 if found else len(reads) <= 1


@given(scenes(), st.sampled_from(["rules", "reports", "timed"]))
def test_what_was_not_read_is_unknown_or_does_not_matter(scene: Scene, name: str) -> None:
    known = scene.health
    if name == "timed":
        head = scene.inputs.head
        older = replace(head, spec=replace(head.spec, binding=replace(HOLDING, timed=None)))
        blind = replace(scene.inputs, runs=[older])
    else:
        unread_input = {"read_rules": lambda: REASON} if name == "rules" else {name: REASON}
        blind = replace(scene.inputs, **unread_input)
    unread = replace(scene, inputs=blind)
    assert (unread.health.waiting, unread.health.held) == (known.waiting, known.held), "these need neither"
    assert not isinstance(known.stalled, Unknown)
    if not isinstance(unread.health.stalled, Unknown):
        assert unread.health.stalled == known.stalled
        return
    (finding,) = findings.stalled_results(unread.health.stalled, None, COMMAND)
    assert finding.about == "silent"
    (alert,) = findings.stalled_results(unread.health.stalled, HOUR, COMMAND)
    assert alert.level is Level.ALERT, "a bound that cannot be checked is not met"
    assert any(line.startswith("Not known") for line in explain(unread.plan()))
    assert all(sentence.level is not ReportLevel.GOOD for sentence in unread.verdict()[:1])


@given(scenes())
def test_stalled_results_are_there_and_their_partitions_are_older_than_the_feed(scene: Scene) -> None:
    stalled = scene.health.stalled
    assert not isinstance(stalled, Unknown)
    reports = scene.inputs.known_reports[scene.inputs.head.spec.run]
    held = sum(report.state["held"]["sums"] for report in reports)
    assert sum(one.results or 0 for one in stalled) <= held
    for one in stalled:
        assert one.results
        assert one.fix
        assert one.behind_ms >= 0
        assert one.newest_ms


def stores(*entries: tuple[int, int]) -> Mapping[str, Mapping[str, list[Any]]]:
    """Return the columns of the suppress, with the partition and the end of the window of each entry."""
    times = [end for _, end in entries]
    return {
        "sums": {
            "_partition": [partition for partition, _ in entries],
            "user": ["x"] * len(entries),
            "_buffer_time": times,
        }
    }


@given(scenes(), st.integers(1, 3))
def test_an_open_window_has_a_cause_and_a_store_that_was_not_read_is_named(scene: Scene, end: int) -> None:
    closed = open_windows(scene.inputs)
    assert list(closed.not_read) == ["sums"], "nothing says that there are none"
    found = open_windows(replace(scene.inputs, stores=stores((0, end * HOUR), (1, end * HOUR))))
    assert (found.results, found.not_read) == (2, [])
    for window in found.shown:
        assert window.cause in set(Cause)
        assert window.why
    blind = open_windows(replace(scene.inputs, stores=stores((0, end * HOUR)), reports=REASON))
    assert [window.cause for window in blind.shown] == [Cause.UNKNOWN]
