"""Outputs and stores without declared types: `plan` and `run` say once what becomes JSON text, and which call declares it."""

from __future__ import annotations

import pytest

from rewindow import JoinWindows, Processor, StreamsBuilder, TimeWindows, key_value_store, until_window_closes
from rewindow.control.plan.undeclared_types import undeclared_types
from rewindow.dsl.stream import KStream
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.scene import Bench
from tests.bad_input.test_recorded_topics import FEED, JOB, clicks, record
from tests.refusals import containing, fixes, told

CODE = """\
from rewindow import Processor, StreamsBuilder


class Forward(Processor):
    def process(self, record):
        self.context.forward(record.with_value(record.value.page))


def build_topology():
    builder = StreamsBuilder()
    builder.stream("clicks").process(Forward, name="enrich").to("windows")
    return builder.build()
"""


@pytest.fixture
def untyped(new_shop: Bench) -> Bench:
    new_shop.write("conf/feeds/clicks.yaml", FEED % "")
    new_shop.write("conf/jobs/windows.yaml", JOB)
    new_shop.write("jobs/windows.py", CODE)
    record(new_shop, "0", clicks(1, 5))
    new_shop.done("land clicks")
    return new_shop


def test_plan_and_the_first_run_name_the_call_that_declares_a_type(untyped: Bench) -> None:
    hint = told(
        untyped.said("plan windows")["undeclared"],
        "type-undeclared",
        call="process(..., key=TYPE, value=TYPE)",
        where=containing("jobs/windows.py:11"),
    )
    assert hint in untyped.run("plan", "windows").out
    assert untyped.json("run windows")["summary"]["hint_codes"] == ["type-undeclared"]
    record(untyped, "1", clicks(2, 5))
    untyped.done("land clicks")
    assert untyped.json("plan windows")["undeclared"] == []
    assert untyped.json("run windows")["summary"]["hint_codes"] == []


def test_the_way_out_after_the_type_was_declared_works(untyped: Bench) -> None:
    untyped.done("run windows")
    untyped.edit("jobs/windows.py", 'name="enrich"', 'name="enrich", key=str, value=str')
    failure = untyped.refuses("run windows", "job-changed-since-checkpoint")
    assert "reset windows" in fixes(failure)
    untyped.done("reset windows --yes", "run windows")
    values = read_rows(table_path(str(untyped.warehouse), "windows"))["value"].to_pylist()
    assert sorted(values) == sorted(page for _, _, page in clicks(1, 5))


def make(*steps):  # type: ignore[no-untyped-def]
    """Return the hints of a topology that the steps make of a stream."""
    builder = StreamsBuilder()
    for step in steps:
        step(builder.stream("clicks"))
    return list(undeclared_types(builder._graph.topology))


class Own(Processor):
    """A processor with a store."""


def windowed(stream: KStream) -> None:
    windows = (
        stream.select_key(lambda _key, value: value.page).group_by_key().windowed_by(TimeWindows.of("1h", grace="0s"))
    )
    windows.count(store="n").suppress(until_window_closes(), name="closed").to_stream().to("out")


def joined_by_new_keys(stream: KStream) -> None:
    left, right = (stream.select_key(lambda _key, value: value.page, name=name) for name in ("a", "b"))
    windows = JoinWindows.of("1h", grace="0s")
    left.join(right, lambda left, right: left.page, windows, name="j", value=str).to("out")


@pytest.mark.parametrize(
    ("step", "call", "targets"),
    [
        (lambda s: s.map_values(lambda v: v.page).where("value != 'x'").to("out"), "map_values(..., value=TYPE)", 1),
        (lambda s: s.map(lambda k, v: (k, v)).peek(print, name="p").to("out"), "map(..., key=TYPE, value=TYPE)", 2),
        (windowed, "select_key(..., key=TYPE)", 2),
        (
            lambda s: s.select_key(lambda k, v: v.page, name="k").select("page as p").to("out"),
            "select_key(..., key=TYPE)",
            1,
        ),
        (joined_by_new_keys, "to(..., key=TYPE)", 1),
        (
            lambda s: s.group_by_key().aggregate(dict, lambda k, v, a: a, store="n").to_stream().to("out"),
            "aggregate(..., value=TYPE)",
            2,
        ),
        (
            lambda s: (
                s.group_by_key()
                .cogroup(lambda k, v, a: a)
                .cogroup(s.filter(lambda k, v: True).group_by_key(), lambda k, v, a: a)
                .aggregate(dict, store="n")
                .to_stream()
                .to("out")
            ),
            "aggregate(..., value=TYPE)",
            2,
        ),
        (
            lambda s: s.map_values(lambda v: v).to_table(store="t").to_stream().to("out"),
            "map_values(..., value=TYPE)",
            2,
        ),
        (
            lambda s: s.process(Own, name="o", stores=[key_value_store("own", key=str)], key=str, value=str).to("out"),
            "key_value_store(..., value=TYPE)",
            1,
        ),
        (
            lambda s: (
                s.map_values(lambda v: v, value=str, name="a").merge(s.map_values(lambda v: v, name="b")).to("out")
            ),
            "to(..., value=TYPE)",
            1,
        ),
    ],
)
def test_the_call_is_the_one_that_makes_the_values(step, call, targets):  # type: ignore[no-untyped-def]
    (hint,) = make(step)
    assert (hint.facts["call"], hint.facts["targets"].count("the ")) == (call, targets), hint
    assert __file__ in hint.facts["where"]


@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.to("out"),
        lambda s: s.map_values(lambda v: v, value=dict).to("out"),
        lambda s: s.map_values(lambda v: v).to("out", value=str),
        lambda s: s.map_values(lambda v: v).foreach(print, name="f"),
        lambda s: s.group_by_key().count(store="n").to_stream().to("out"),
    ],
)
def test_declared_types_need_no_word(step):  # type: ignore[no-untyped-def]
    assert make(step) == []
