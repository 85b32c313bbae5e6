"""Misuse is rejected with the fix when the topology is built, not at the first record."""

from __future__ import annotations

import functools

import pytest

from rewindow import (
    Count,
    JoinWindows,
    Materialized,
    Processor,
    Record,
    SessionWindows,
    StreamsBuilder,
    Sum,
    TimeWindows,
    To,
    key_value_store,
)
from rewindow.errors import TopologyError
from rewindow.testing import TopologyTestDriver
from tests.refusals import refused

OTHER = StreamsBuilder()
WITHIN = JoinWindows.of("1h", grace="0s")


class Silent(Processor):
    """Forwards nothing."""


class Misspelt(Processor):
    def proces(self, record):
        pass


class Named(Processor):
    def __init__(self, name):
        self.name = name


def joined(left, right):
    return (left, right)


@pytest.mark.parametrize(
    ("verb", "wrong"),
    [
        ("filter", "amount > 1"),
        ("filter_not", None),
        ("map", ("k", "v")),
        ("map_values", 5),
        ("flat_map", []),
        ("flat_map_values", []),
        ("select_key", "user"),
        ("peek", "x"),
        ("group_by", "user"),
    ],
)
def test_a_stream_verb_rejects_what_is_not_a_function(verb, wrong):
    with refused("function-not-callable"):
        getattr(StreamsBuilder().stream("in"), verb)(wrong)


def stream():
    return StreamsBuilder().stream("in")


def table():
    return StreamsBuilder().table("in", store="s")


def joined_with(joiner, *, table):
    builder = StreamsBuilder()
    left = builder.table("l", store="l") if table else builder.stream("l")
    left.join(builder.table("r", store="r"), joiner)


def only(row):
    return row


ARITIES = {
    "filter": ("(key, value)", lambda f: stream().filter(f)),
    "filter_not": ("(key, value)", lambda f: stream().filter_not(f)),
    "map": ("(key, value)", lambda f: stream().map(f)),
    "flat_map": ("(key, value)", lambda f: stream().flat_map(f)),
    "select_key": ("(key, value)", lambda f: stream().select_key(f)),
    "peek": ("(key, value)", lambda f: stream().peek(f)),
    "branch": ("(key, value)", lambda f: stream().split().branch(f)),
    "map_values": ("(key, value)", lambda f: stream().map_values(f, with_key=True)),
    "flat_map_values": ("(key, value)", lambda f: stream().flat_map_values(f, with_key=True)),
    "map_values of a table": ("(key, value)", lambda f: table().map_values(f, with_key=True)),
    "filter of a table": ("(key, value)", lambda f: table().filter(f)),
    "group_by of a table": ("(key, value)", lambda f: table().group_by(f)),
    "reduce": ("(aggregate, value)", lambda f: stream().group_by_key().reduce(f, store="n")),
    "aggregate": ("(key, value, aggregate)", lambda f: stream().group_by_key().aggregate(int, f, store="n")),
    "reduce of a table": (
        "(aggregate, value)",
        lambda f: table().group_by(lambda k, v: (k, v)).reduce(lambda a, b: a, f, store="n"),
    ),
    "aggregate of a table": (
        "(key, value, aggregate)",
        lambda f: table().group_by(lambda k, v: (k, v)).aggregate(int, f, f, store="n"),
    ),
    "join": ("(left, right)", lambda f: joined_with(f, table=False)),
    "join of tables": ("(left, right)", lambda f: joined_with(f, table=True)),
}


@pytest.mark.parametrize("verb", ARITIES)
def test_a_function_with_the_wrong_arity_is_named_with_file_and_line(verb):
    called_with, use = ARITIES[verb]
    line = test_a_function_with_the_wrong_arity_is_named_with_file_and_line.__code__.co_firstlineno + 6
    function, arguments = f"the lambda ({__file__}:{line})", called_with.strip("()")
    with refused("function-parameters-wrong", function=function, signature="(row)", arguments=arguments):
        use(lambda row: row)
    with pytest.raises(TopologyError, match=r"only \(.*test_misuse.py:\d+\) takes \(row\)"):
        use(only)


def test_functions_with_defaults_and_without_a_signature_are_accepted():
    stream().map_values(str).map_values(int).filter(lambda key, value, least=1: value > least).peek(print)
    stream().map(lambda *both: both).map_values(functools.partial(pow, 2))


@pytest.mark.parametrize("verb", ["filter", "filter_not", "map_values", "group_by"])
def test_a_table_verb_rejects_what_is_not_a_function(verb):
    with refused("function-not-callable"):
        getattr(StreamsBuilder().table("in", store="s"), verb)("amount")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("write", "refusal"),
    [
        (lambda s, t: s.foreach("print", name="f"), refused("action-not-callable", given="'print'")),
        (lambda s, t: s.split().branch("x"), refused("function-not-callable", verb="branch", given="'x'")),
        (lambda s, t: s.branch(), refused("branch-without-predicate")),
        (lambda s, t: s.join(t, "amount"), refused("function-not-callable", verb="join", given="'amount'")),
        (lambda s, t: t.join(t, None), refused("function-not-callable", verb="join", given="None")),
        (
            lambda s, t: t.join(t, joined, foreign_key="user", store="j"),
            refused("function-not-callable", verb="foreign_key=", given="'user'"),
        ),
        (lambda s, t: s.process(Silent(), name="p"), refused("supplier-not-callable", node="p")),
        (
            lambda s, t: s.process_values(Silent(), name="p"),
            refused("function-not-callable", verb="process_values", given="<tests.dsl.test_misuse.Silent object>"),
        ),
        (
            lambda s, t: s.transform(Silent(), name="p"),
            refused("function-not-callable", verb="transform", given="<tests.dsl.test_misuse.Silent object>"),
        ),
        (lambda s, t: s.process(Silent, name="p", stores="kv"), refused("stores-not-listed")),
        (lambda s, t: s.process(Silent, name="p", stores=key_value_store("kv")), refused("stores-not-listed")),
        (lambda s, t: s.process(Silent, name=5), refused("node-name-invalid", given="5")),
        (lambda s, t: s.process(Silent, name="p", stores=[key_value_store("")]), refused("store-name-invalid")),
        (lambda s, t: s.merge(t), refused("merge-input-invalid", node="in", given="'s'")),
        (lambda s, t: s.merge(OTHER.stream("x")), refused("merge-input-invalid")),
        (lambda s, t: t.join(s, joined), refused("table-join-input-invalid")),
        (lambda s, t: t.left_join(OTHER.table("x", store="x"), joined), refused("table-join-input-invalid")),
        (lambda s, t: s.group_by_key().count(store=None), refused("store-without-name", given="None")),
        (lambda s, t: s.group_by_key().count(store=""), refused("store-without-name")),
        (lambda s, t: s.group_by_key().aggregate(Count, store="c"), refused("aggregate-not-understood")),
        (lambda s, t: t.group_by(joined).aggregate(Count, store="c"), refused("aggregate-cannot-subtract")),
        (
            lambda s, t: s.group_by_key().aggregate({"n": 5}, store="c"),
            refused("aggregate-part-invalid", name="n", part="5"),
        ),
        (lambda s, t: s.group_by_key().aggregate({"n": Sum}, store="c"), refused("aggregate-part-invalid")),
        (lambda s, t: s.group_by_key().aggregate({"class": Count()}, store="c"), refused("aggregate-name-invalid")),
        (lambda s, t: s.group_by_key().aggregate({"_run": Count()}, store="c"), refused("aggregate-name-invalid")),
        (
            lambda s, t: Materialized.as_("s", retention="-1ms"),
            refused("store-retention-negative", store="s", retention="'-1ms'"),
        ),
        (lambda s, t: s.where(lambda k, v: True), refused("condition-not-text", given="<lambda>")),
        (lambda s, t: s.select(["amount"]), refused("selected-fields-not-text", given="['amount']")),
        (lambda s, t: s.process(Misspelt, name="p"), refused("process-method-missing", method="proces")),
        (lambda s, t: s.join(t, joined, WITHIN), refused("table-join-option-refused")),
        (lambda s, t: s.select_key(lambda k, v: v).join(t, joined), refused("table-join-unnamed")),
        (
            lambda s, t: s.group_by_key().windowed_by(SessionWindows("30m", "1h")),
            refused("windows-made-without-of"),
        ),
        (
            lambda s, t: TimeWindows.of("1d", grace="6h").advance_by("2d"),
            refused("window-advance-invalid", size="1d"),
        ),
        (lambda s, t: TimeWindows.of(1.5, grace="0s"), refused("duration-without-unit", given="1.5")),
        (lambda s, t: TimeWindows.of("1s", grace=None), refused("duration-not-understood", given="None")),
    ],
)
def test_misuse_is_rejected_with_the_fix(write, refusal):
    builder = StreamsBuilder()
    stream, table = builder.stream("in"), builder.table("t", store="s")
    with refusal:
        write(stream, table)


def test_the_error_of_a_failing_supplier_names_its_node():
    builder = StreamsBuilder()
    builder.stream("in").process(Named, name="mine").to("out")
    with refused(
        "supplier-failed",
        node="mine",
        error="TypeError: Named.__init__() missing 1 required positional argument: 'name'",
    ):
        TopologyTestDriver(builder.build())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("args", "to", "refusal"),
    [
        (("text",), None, refused("forwarded-value-not-record", node="p", record="'text'")),
        ((Record("k", 1),), "out-sink", refused("forward-target-invalid", target="'out-sink'")),
        ((Record("k", 1),), To.child("x"), refused("child-unknown", node="p", child="'x'")),
    ],
)
def test_a_wrong_forward_names_node_and_record(args, to, refusal):
    class Forwarding(Processor):
        def process(this, record):  # noqa: N805 - whatever a processor calls itself, it is found
            this.context.forward(*args, to=to)

    builder = StreamsBuilder()
    builder.stream("in").process(Forwarding, name="p").to("out")
    with refusal as raised:
        TopologyTestDriver(builder.build()).pipe("in", "k", 1, 0)
    assert "in offset 0, partition 0, node 'p'" in str(raised.value)


@pytest.mark.parametrize("timestamp", [None, "1", 1.0, True])
def test_the_driver_accepts_only_integer_timestamps(timestamp):
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with refused("driver-timestamp-not-int"):
        TopologyTestDriver(builder.build()).pipe("in", "k", 1, timestamp)
