from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rewindow.control.ingest.landings import Feed, LandedRange
from rewindow.control.plan.explain import describe_plan, explain
from rewindow.control.plan.job_diff import differences
from rewindow.control.plan.job_fold import fold
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.sequence import History
from rewindow.control.plan.spec import RunRequest, RunSpec, TableSpec, canonical_json
from rewindow.errors import ReasonMessage
from rewindow.streams.serde.schema import Column
from rewindow.streams.timing import TimedNode
from tests.control.ledgers import BINDING, HOUR, a_feed, plan, plan_row, planned, run_rows
from tests.refusals import Refusal, containing, fixes, refused


def nothing(text: str) -> ReasonMessage:
    return ReasonMessage("all-epochs-taken", text)


def epochs(spec):
    return list(spec.epochs)


def test_a_run_takes_all_epochs_that_the_branch_has_not():
    assert epochs(planned([], "a")) == [1, 2, 3]
    assert epochs(planned(run_rows([], "a"), "b", a_feed(5))) == [4, 5]


def test_through_a_landing_or_a_time_stops_earlier():
    assert epochs(planned([], "a", through_landing=2)) == [1, 2]
    assert epochs(planned([], "a", through_ms=2 * HOUR)) == [1, 2]
    assert epochs(planned([], "a", through_ms=3 * HOUR - 1)) == [1, 2]


def test_until_is_a_time_of_arrival():
    feed = a_feed(3)
    landings = (replace(one, interval=((n - 1) * HOUR, n * HOUR)) for n, one in enumerate(feed.landings, start=1))
    timed = Feed(feed.definition, History(landings))
    assert epochs(planned([], "a", timed, until_ms=2 * HOUR)) == [1, 2]
    assert epochs(planned([], "a", timed, until_ms=3 * HOUR - 1)) == [1, 2]
    assert isinstance(plan([], "a", timed, request=RunRequest(until_ms=HOUR - 1)), UpToDate)
    with refused("feed-without-intervals"):
        planned([], "a", feed, until_ms=HOUR)


def test_a_future_landing_ends_with_not_now():
    with refused("landing-not-there-yet", feed="activity", landing=4, landings=3) as caught:
        plan([], "a", request=RunRequest(through_landing=4))
    assert fixes(caught.value) == ["land activity"]


def test_nobody_is_sent_to_land_for_a_landing_that_one_call_may_never_make():
    with refused("landing-not-there-yet", landing=5, landings=3, fix=containing("landing 3")) as caught:
        plan([], "a", request=RunRequest(through_landing=5))
    assert fixes(caught.value) == []


def test_there_may_be_nothing_to_run():
    rows = run_rows([], "a")
    for request, reason in [
        (RunRequest(), Refusal("all-epochs-taken", {"epoch": 3, "sealed": ""})),
        (RunRequest(through_landing=2), Refusal("branch-beyond-epoch", {"epoch": 2})),
        (RunRequest(through_ms=0), Refusal("landings-later-than-requested", {})),
    ]:
        decision = plan(rows, "b", request=request)
        assert isinstance(decision, UpToDate)
        reason.check(decision.reason)
    empty = plan([], "a", Feed(a_feed().definition, ()))
    assert isinstance(empty, UpToDate)
    assert empty.reason.code == "feed-without-landings"


def test_a_changed_job_is_refused_even_if_there_is_nothing_to_run():
    rows, changed = run_rows([], "a"), replace(BINDING, fingerprint="e" * 64, semantics={"wall_clock": "run"})
    for request in (RunRequest(), RunRequest(through_landing=2), RunRequest(through_ms=0)):
        with refused("job-changed-since-checkpoint", run="main/1"):
            plan(rows, "b", request=request, binding=changed)
    assert isinstance(plan(rows, "b", request=RunRequest(accept_changes=True), binding=changed), UpToDate)
    keyed = run_rows([], "a", key="2013-01")
    assert isinstance(plan(keyed, "b", request=RunRequest(key="2013-01"), binding=changed), UpToDate)
    sealed = run_rows([], "a", final=True)
    assert isinstance(plan(sealed, "b", binding=changed), UpToDate)


def test_a_bounded_run_leaves_the_key_and_the_seal_to_the_last_run():
    request = RunRequest(at_most=2, final=True, key="2013-01")
    first = plan([], "a", request=request)
    assert isinstance(first, RunSpec)
    assert (epochs(first), first.final, first.key) == ([1, 2], False, None)
    last = plan(run_rows([], "a", through_landing=2), "b", request=request)
    assert isinstance(last, RunSpec)
    assert (epochs(last), last.final, last.key) == ([3], True, "2013-01")


def test_a_request_with_a_key_runs_once():
    rows = run_rows([], "a", through_landing=1, key="2013-01")
    decision = plan(rows, "b", request=RunRequest(key="2013-01"))
    assert isinstance(decision, UpToDate)
    Refusal("request-committed", {"key": "2013-01", "run": "main/1"}).check(decision.reason)
    assert isinstance(plan(rows, "b", request=RunRequest(key="2013-02")), RunSpec)


def test_the_clock_goes_from_the_parents_last_watermark_to_this_runs():
    rows = run_rows([], "a", through_landing=1)
    first, second = fold(rows).committed[0].spec, planned(rows, "b")
    assert (first.input.clock_from_ms, first.input.clock_to_ms) == (-1, HOUR)
    assert (second.input.clock_from_ms, second.input.clock_to_ms) == (HOUR, 3 * HOUR)


def test_a_live_attempt_blocks_the_branch():
    rows = [plan_row(planned([], "a"))]
    with refused("run-being-executed", process=7):
        plan(rows, "b", alive=True)
    assert isinstance(plan(rows, "b", request=RunRequest(branch="trial"), alive=True), RunSpec)
    assert isinstance(plan(rows, "b", request=RunRequest(take_over=True), alive=True), RunSpec)


def test_a_dead_attempts_plan_is_completed_unchanged():
    rows = [plan_row(planned([], "a", through_landing=2))]
    again = planned(rows, "b", a_feed(9))
    assert (epochs(again), again.input.clock_to_ms, again.takes_over) == ([1, 2], 2 * HOUR, 1)
    assert (again.run, again.attempt.id) == (2, "b")
    assert planned(rows, "b", a_feed(9, generation=2, kept=2)).input.generation == 1
    thereafter = planned(run_rows(rows, "b", a_feed(9)), "c", a_feed(9))
    assert (epochs(thereafter), thereafter.takes_over) == ([3, 4, 5, 6, 7, 8, 9], None)


def test_a_dead_attempts_plan_that_takes_more_than_the_request_is_replaced():
    rows = [plan_row(planned([], "a"))]
    for request in ({"through_landing": 2}, {"through_ms": 2 * HOUR}):
        fewer = planned(rows, "b", **request)
        assert (epochs(fewer), fewer.input.clock_to_ms, fewer.takes_over, fewer.repeats) == (
            [1, 2],
            2 * HOUR,
            None,
            None,
        )
    after = run_rows(rows, "b", through_landing=2)
    assert epochs(planned(after, "c")) == [3]


def test_a_dead_attempts_plan_that_seals_the_branch_is_completed_only_if_the_request_seals_it():
    rows = [plan_row(planned([], "a", final=True))]
    assert (planned(rows, "b").final, planned(rows, "b").takes_over) == (False, None)
    assert (planned(rows, "b", final=True).final, planned(rows, "b", final=True).takes_over) == (True, 1)


def test_a_live_attempts_plan_is_not_replaced_by_a_smaller_request():
    rows = [plan_row(planned([], "a"))]
    with refused("run-being-executed"):
        plan(rows, "b", request=RunRequest(through_landing=1), alive=lambda _attempt: True)


def test_a_dead_attempts_plan_is_replaced_on_request_or_without_its_landings():
    rows = [plan_row(planned([], "a", through_landing=2))]
    assert epochs(planned(rows, "b", replan=True)) == [1, 2, 3]
    dropped = planned(rows, "b", a_feed(4, generation=2, kept=1))
    assert (epochs(dropped), dropped.input.generation) == ([1, 2, 3, 4], 2)


def test_a_branch_continues_on_a_generation_that_shares_its_landings():
    rows = run_rows([], "a")
    on = planned(rows, "b", a_feed(4, generation=2, kept=3))
    assert (epochs(on), on.input.generation) == ([4], 2)


@pytest.mark.parametrize(("landings", "kept"), [(4, 2), (4, 0), (2, 2)])
def test_landings_that_a_new_generation_dropped_stop_the_branch(landings, kept):
    rows = run_rows(run_rows([], "a", through_landing=2), "b")
    request = RunRequest(through_landing=landings)
    if landings < 3:
        assert isinstance(plan(rows, "c", a_feed(landings, generation=2, kept=kept), request), UpToDate)
        return
    to, begin = {2: ("main/1", 3), 0: ("0", 1)}[kept]
    with refused("run-input-missing") as caught:
        plan(rows, "c", a_feed(landings, generation=2, kept=kept), request)
    assert fixes(caught.value)[:2] == [f"rewind counts --to {to}", f"backfill counts --from {begin} --branch NAME"]


def test_a_request_for_everything_fails_if_the_generation_dropped_landings():
    rows = run_rows(run_rows([], "a", through_landing=2), "b")
    with refused("run-input-missing"):
        plan(rows, "c", a_feed(2, generation=2, kept=2))


def test_a_sealed_branch_takes_no_more_runs():
    rows = run_rows([], "a", final=True)
    done = plan(rows, "b", request=RunRequest(final=True))
    assert isinstance(done, UpToDate)
    assert done.reason.facts["sealed"]
    with refused("branch-sealed"):
        plan(rows, "b", a_feed(4))


def test_final_seals_a_branch_that_has_taken_all_epochs():
    rows = run_rows([], "a")
    spec = planned(rows, "b", final=True)
    assert (epochs(spec), spec.final, spec.input.clock_to_ms) == ([], True, 3 * HOUR)
    assert isinstance(plan([], "a", Feed(a_feed().definition, ()), RunRequest(final=True)), UpToDate)


def test_changed_code_or_settings_are_refused():
    rows = run_rows([], "a", through_landing=1)
    node = {"name": "source", "parents": [], "source": "clicks"}
    part = {**BINDING.topology[0], "nodes": [node, {"name": "extra", "parents": ["source"]}]}
    other = replace(BINDING, fingerprint="e" * 64, topology=[part], semantics={"wall_clock": "run"})
    with refused("job-changed-since-checkpoint", job="counts") as caught:
        plan(rows, "b", binding=other)
    changes = str(caught.value.facts["changes"])
    assert all(f"{part}: " in changes for part in ("node extra", "node source", "setting wall_clock"))
    assert isinstance(plan(rows, "b", request=RunRequest(branch="trial"), binding=other), RunSpec)


def test_the_same_job_has_no_differences():
    assert differences(BINDING, RunSpec.from_json(planned([], "a").as_json()).binding) == []


@pytest.mark.parametrize("accepted", [(), ("functions",)])
def test_the_text_that_is_hashed_is_the_canonical_json_of_the_whole_plan(accepted):
    made = replace(planned([], "a"), accepted=accepted)
    read = RunSpec.from_json(json.loads(canonical_json(made.as_json())))
    again = RunSpec.from_json(json.loads(canonical_json(made.as_json())), read)
    assert {spec.canonical_json() for spec in (made, read, again)} == {canonical_json(made.as_json())}
    assert again.binding is read.binding
    other = {**made.as_json(), "job": "another"}
    assert RunSpec.from_json(other, read).binding.job == "another"


def test_a_version_that_does_not_know_the_nodes_that_wait_computes_the_same_chain():
    node = TimedNode("closed", 0, "sums", "buffer", 0, durations={}, sends_nulls=False, topics=(), spans={})
    before = planned([], "a")
    made = replace(before, binding=replace(BINDING, timed=(node,)))
    read = RunSpec.from_json(json.loads(canonical_json(made.as_json())), before)
    assert read.binding.timed == made.binding.timed
    assert RunSpec.from_json(before.as_json(), read).binding.timed is None
    assert made.binding.json == before.binding.json
    assert made.canonical_json() == before.canonical_json()


def test_each_kind_of_difference_is_named():
    elsewhere = {**BINDING.tables, "output/totals": TableSpec("b/totals", BINDING.tables["output/totals"].columns)}
    wider = {"sums": (*BINDING.stores["sums"], Column("more", "string"))}
    assert differences(BINDING, replace(BINDING, tables=elsewhere, stores=wider)) == [
        "columns of store sums: more string is new",
        "table of output/totals: path: alerts/totals -> b/totals",
    ]
    assert differences(BINDING, replace(BINDING, stores={}, feed="another")) == [
        "columns of store sums: is removed",
        "feed: activity -> another",
    ]
    assert differences(BINDING, replace(BINDING, fingerprint="e" * 64))[0].startswith("fingerprint: ffff")


def held_feed():
    feed = a_feed(3)
    last = feed.landings[-1]
    held = {tp: LandedRange(r.start, r.end, r.max_timestamp, r.release - 4) for tp, r in last.ranges.items()}
    return Feed(feed.definition, (*feed.landings[:2], replace(last, ranges=held)))


def test_a_plan_is_explained():
    rows = run_rows([], "a", through_landing=1)
    feed, spec = held_feed(), planned(rows, "b", through_landing=2)
    described = describe_plan(fold(rows), feed, spec, "main", BINDING)
    text = "\n".join(explain(described))
    assert "Run main/2 takes epoch 2 of feed 'activity' (generation 1) and continues from run main/1." in text
    assert "epoch 2: 20 records, complete through 1970-01-01 02:00:00Z" in text
    assert "offsets: events-0 10 to 19" in text
    assert "Landing 3 is left for a later run" in text
    assert "events-1: 4 records wait for the watermark to pass" in text


def test_a_plan_names_the_offsets_of_some_partitions_only():
    taken = [{"topic": "events", "partition": number, "start": number, "end": 2 * number + 1} for number in range(10)]
    feed = a_feed()
    described = describe_plan(fold([]), feed, planned([], "a", feed, through_landing=1), "main", BINDING)
    described["epochs"][0]["offsets"] = taken
    (line,) = (one for one in explain(described) if "offsets" in one)
    assert line.startswith("    offsets: events-0 0, events-1 1 to 2, ")
    assert line.endswith(", events-7 7 to 14, and 2 more partitions")


def test_a_plan_of_many_epochs_shows_the_first_and_the_last_ones():
    feed = a_feed(5_000)
    text = explain(describe_plan(fold([]), feed, planned([], "a", feed), "main", BINDING))
    assert len(text) < 30
    between = next(line for line in text if "epochs 4 to 4997" in line)
    assert between.endswith(" records")
    assert sum(line.startswith("  epoch ") for line in text) == 6


def test_a_pending_plan_and_an_idle_branch_are_explained():
    rows = [plan_row(planned([], "a", through_landing=2, final=True))]
    again = planned(rows, "b", final=True)
    text = "\n".join(explain(describe_plan(fold(rows), a_feed(), again, "main", BINDING)))
    assert "completes the plan of an attempt that did not finish" in text
    assert "It is final" in text
    assert "Run main/1 was planned by process 7 on here and is not committed. Nothing of it counts yet." in text
    other = planned(rows, "b", through_landing=1)
    text = "\n".join(explain(describe_plan(fold(rows), a_feed(), other, "main", BINDING)))
    assert "Run main/1 was planned by process 7 on here and is not committed. This run replaces it." in text
    done = run_rows([], "a")
    described = describe_plan(fold(done), a_feed(), UpToDate(nothing("all is done")), "main", BINDING)
    assert described["reason_code"] == "all-epochs-taken"
    assert explain(described) == [f"Nothing to run: {described['reason']}."]
    assert described["run"] is None
    changed = replace(BINDING, fingerprint="e" * 64, semantics={"wall_clock": "run"})
    told = explain(describe_plan(fold(done), a_feed(), UpToDate(nothing("all is done")), "main", changed))
    assert "accepts" in told[1]
    assert told[2:] == ["  - setting wall_clock: stream_time -> run"]
    assert explain(describe_plan(fold([]), Feed(a_feed().definition, ()), UpToDate(nothing("x")), "main", BINDING))
