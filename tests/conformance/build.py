"""Build a scenario's topology with the public DSL only."""

from __future__ import annotations

from typing import Any

from rewindow import (
    CalendarWindows,
    CogroupedKStream,
    Count,
    EmitStrategy,
    GlobalKTable,
    JoinWindows,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    Materialized,
    SessionWindowedCogroupedKStream,
    SessionWindowedKStream,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindowedCogroupedKStream,
    TimeWindowedKStream,
    TimeWindows,
    Topology,
    UnlimitedWindows,
    max_bytes,
    max_records,
    unbounded,
    until_time_limit,
    until_window_closes,
    versioned_store,
)
from tests.conformance.script import Script, ScriptProcessor
from tests.conformance.transform import Transform
from tests.oracle.vocabulary import (
    concat,
    key_selector,
    partitioner,
    predicate,
    reducer,
    routed,
    tagger,
    text_of,
    value_mapper,
)

Windowing = TimeWindowedKStream | SessionWindowedKStream
Cogrouping = CogroupedKStream | TimeWindowedCogroupedKStream | SessionWindowedCogroupedKStream
Fired = list[tuple[str, int]]


class MissingError(Exception):
    """An operator of a scenario does not exist yet. The message is its name."""


class Builder:
    """Builds one scenario. Each ``op`` of the format is a method here."""

    def __init__(self, scenario: dict[str, Any], fired: Fired) -> None:
        self._fired = fired
        self._builder = StreamsBuilder()
        self._made: dict[str, Any] = {}
        for source in scenario["sources"]:
            self._made[source["name"]] = self._source(source)
        for node in scenario["nodes"]:
            self._made[node["name"]] = self._node(node)
        for sink in scenario["sinks"]:
            made = self._made[sink["in"]]
            stream = made.to_stream() if isinstance(made, KTable) else made
            if "route" in sink:
                stream.to(routed(sink), outputs=sink["outputs"], name=sink["name"])
            else:
                stream.to(sink["name"])

    def build(self) -> Topology:
        return self._builder.build()

    def _source(self, source: dict[str, Any]) -> KStream | KTable | GlobalKTable:
        name = source["name"]
        if source["kind"] == "global":
            return self._builder.global_table(name, store=name)
        if source["kind"] == "stream":
            return self._builder.stream(name)
        history = source.get("history")
        store = name if history is None else versioned_store(name, history=f"{history}ms")
        return self._builder.table(name, store=store)

    def _node(self, node: dict[str, Any]) -> Any:
        op, name = node["op"], node["name"]
        names = node["in"] if isinstance(node["in"], list) else [node["in"]]
        made = [self._made[one] for one in names]
        method = getattr(self, f"op_{op}", None)
        if method is None:
            raise MissingError(op)
        try:
            return method(node, name, *made)
        except KeyError as unknown:  # a word of the scenario that no table here has
            raise MissingError(f"{op} with {unknown}") from unknown

    def op_filter(self, node: dict[str, Any], name: str, parent: KStream | KTable) -> KStream | KTable:
        test = predicate(node["pred"])
        if isinstance(parent, KTable):
            return parent.filter(lambda _key, value: test(value), store=_store(node), name=name)
        return parent.filter(lambda _key, value: test(value), name=name)

    def op_map_values(self, node: dict[str, Any], name: str, parent: KStream | KTable) -> KStream | KTable:
        if isinstance(parent, KTable):
            return parent.map_values(value_mapper(node["fn"]), store=_store(node), name=name)
        return parent.map_values(value_mapper(node["fn"]), name=name)

    def op_select_key(self, node: dict[str, Any], name: str, parent: KStream) -> KStream:
        return parent.select_key(key_selector(node["by"]), name=name)

    def op_repartition(self, node: dict[str, Any], name: str, parent: KStream) -> KStream:
        chosen = node.get("partitioner")
        return parent.repartition(name=name, partitioner=partitioner(chosen) if chosen else None)

    def op_merge(self, _node: dict[str, Any], name: str, first: KStream, *others: KStream) -> KStream:
        return first.merge(*others, name=name)

    def op_group_by_key(self, _node: dict[str, Any], _name: str, parent: KStream) -> KGroupedStream:
        return parent.group_by_key()

    def op_group_by(self, node: dict[str, Any], _name: str, parent: KStream | KTable) -> KGroupedStream | KGroupedTable:
        select = key_selector(node["by"])
        if isinstance(parent, KTable):
            return parent.group_by(lambda key, value: (select(key, value), value))
        return parent.group_by(select)

    def op_cogroup(
        self, node: dict[str, Any], _name: str, first: KGroupedStream, *others: KGroupedStream
    ) -> CogroupedKStream:
        functions = [_tagging(fn) for fn in node["fns"]]
        cogrouped = first.cogroup(functions[0])
        for other, function in zip(others, functions[1:], strict=True):
            cogrouped = cogrouped.cogroup(other, function)
        return cogrouped

    def op_transform_values(self, node: dict[str, Any], name: str, parent: KTable) -> KTable:
        transform = Transform(node)
        return parent.transform_values(transform, name=name, stores=transform.stores(), store=_store(node), value=str)

    def op_window(self, node: dict[str, Any], _name: str, parent: KGroupedStream | CogroupedKStream) -> Any:
        windowed = parent.windowed_by(windows_of(node))
        if node.get("emit") == "window_close":
            return windowed.emit_strategy(EmitStrategy.on_window_close())
        return windowed

    def op_aggregate(
        self, node: dict[str, Any], name: str, parent: KGroupedStream | Windowing | KGroupedTable | Cogrouping
    ) -> KTable:
        if isinstance(parent, KGroupedTable):
            return _table_aggregate(node["fn"], name, parent)
        retention = node.get("retention")
        store = Materialized.as_(name, retention=None if retention is None else f"{retention}ms")
        if isinstance(parent, SessionWindowedCogroupedKStream):
            return parent.aggregate(str, lambda _key, one, later: concat(one, later), store=store, value=str)
        if isinstance(parent, CogroupedKStream | TimeWindowedCogroupedKStream):
            return parent.aggregate(str, store=store, value=str)
        if node["fn"] == "count":
            return parent.aggregate(Count(), store=store)
        if node["fn"] != "concat":
            return parent.reduce(reducer(node["fn"]), store=store)
        functions: list[Any] = [str, lambda _key, value, state: concat(state, value)]
        if isinstance(parent, SessionWindowedKStream):
            functions.append(lambda _key, one, later: concat(one, later))
        return parent.aggregate(*functions, store=store, value=str)

    def op_suppress(self, node: dict[str, Any], name: str, parent: KTable) -> KTable:
        given = node.get("buffer", {})
        buffer = unbounded()
        if "max_records" in given:
            buffer = max_records(given["max_records"])
        if "max_bytes" in given:
            buffer = (
                buffer.with_max_bytes(given["max_bytes"]) if "max_records" in given else max_bytes(given["max_bytes"])
            )
        if given.get("full") == "shutdown":
            buffer = buffer.shut_down_when_full()
        if node["until"] == "window_closes":
            return parent.suppress(until_window_closes(buffer), name=name)
        return parent.suppress(until_time_limit(f"{node['ms']}ms", buffer), name=name)

    def op_to_table(self, _node: dict[str, Any], name: str, parent: KStream) -> KTable:
        return parent.to_table(store=name)

    def op_table_table_join(self, node: dict[str, Any], name: str, left: KTable, right: KTable) -> KTable:
        join = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[node["how"]]
        return join(right, lambda one, other: f"{text_of(one)}|{text_of(other)}", store=_store(node), name=name)

    def op_foreign_key_join(self, node: dict[str, Any], name: str, left: KTable, right: KTable) -> KTable:
        join = {"inner": left.join, "left": left.left_join}[node["how"]]
        return join(right, _text_of_both, foreign_key=key_selector(node["by"]), store=name, value=str)

    def op_stream_stream_join(self, node: dict[str, Any], name: str, left: KStream, right: KStream) -> KStream:
        before, after, grace = (f"{node[what]}ms" for what in ("before", "after", "grace"))
        windows = JoinWindows.of("1w", grace=grace).before(before).after(after)
        verb = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[node["how"]]
        return verb(right, lambda one, other: f"{text_of(one)}|{text_of(other)}", windows, name=name, value=str)

    def op_stream_table_join(self, node: dict[str, Any], name: str, stream: KStream, table: KTable) -> KStream:
        verb = {"inner": stream.join, "left": stream.left_join}[node["how"]]
        return verb(table, lambda one, row: f"{text_of(one)}|{text_of(row)}", name=name, value=str)

    def op_global_table_join(self, node: dict[str, Any], name: str, stream: KStream, table: GlobalKTable) -> KStream:
        verb, select = {"inner": stream.join, "left": stream.left_join}[node["how"]], key_selector(node["by"])
        if not node.get("keys"):
            return verb(table, select, _text_of_both, name=name, value=str)
        join = lambda key, left, right: "|".join(map(text_of, (key, select(key, left), left, right)))  # noqa: E731
        return verb(table, select, join, with_key=True, name=name, value=str)

    def op_to_stream(self, _node: dict[str, Any], name: str, parent: KTable) -> KStream:
        return parent.to_stream(name=name)

    def op_processor(self, node: dict[str, Any], name: str, parent: KStream) -> KStream:
        script = Script(node, self._fired)
        for action in script.actions():
            if not hasattr(ScriptProcessor, f"do_{action}"):
                raise MissingError(f"the action {action}")
        return parent.process(script, name=name, stores=script.stores())


def _tagging(fn: dict[str, Any]) -> Any:
    add = tagger(fn)
    return lambda _key, value, state: add(state, value)


def _text_of_both(left: Any, right: Any) -> str:
    return f"{text_of(left)}|{text_of(right)}"


def _store(node: dict[str, Any]) -> str | None:
    return node["name"] if node.get("materialize") else None


def _table_aggregate(fn: str, name: str, parent: KGroupedTable) -> KTable:
    if fn == "count":
        return parent.count(store=name)
    if fn == "sum":
        return parent.reduce(lambda one, other: one + other, lambda one, other: one - other, store=name)
    return parent.aggregate(
        lambda: "",
        lambda _key, value, state: f"{state}+{value}",
        lambda _key, value, state: f"{state}-{value}",
        store=name,
        value=str,
    )


def windows_of(node: dict[str, Any]) -> Any:
    """Return the windows of a scenario's node."""
    length = {name: f"{node[name]}ms" for name in ("size", "advance", "diff", "gap", "grace") if name in node}
    match node["type"]:
        case "tumbling":
            return TimeWindows.of(length["size"], grace=length["grace"])
        case "hopping":
            return TimeWindows.of(length["size"], grace=length["grace"]).advance_by(length["advance"])
        case "calendar":
            size, advance = (f"{count}{node['unit']}" for count in (node["step"] * node["steps"], node["step"]))
            return CalendarWindows.of(size, advance=advance, zone=node["zone"], grace=length["grace"])
        case "sliding":
            return SlidingWindows.of(length["diff"], grace=length["grace"])
        case "session":
            return SessionWindows.of(length["gap"], grace=length["grace"])
        case "unlimited":
            return UnlimitedWindows.of().start_on(node["start"])
    raise MissingError(f"window {node['type']}")
