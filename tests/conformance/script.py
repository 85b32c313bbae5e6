"""A processor that runs the actions of a scenario with the public Processor API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StoreBuilder, To, key_value_store
from tests.oracle.vocabulary import predicate

UNKNOWN = -1


class Script:
    """The actions of a processor node, and the stores that they need."""

    def __init__(self, node: dict[str, Any], fired: list[tuple[str, int]]) -> None:
        self.name: str = node["name"]
        self.on_init: list[Any] = node.get("on_init", [])
        self.on_record: list[Any] = node.get("on_record", [{"do": "forward"}])
        self.on_punctuate: dict[str, list[Any]] = node.get("on_punctuate", {})
        self.store: str | None = node.get("store")
        self.fired = fired
        """Collects (type, due time) of each punctuation. Equal ones in a step are a tie."""

    @property
    def handles(self) -> str:
        """The name of the store that maps ids to schedules, because fields do not outlive an epoch."""
        return f"{self.name}-handles"

    def actions(self) -> Iterator[str]:
        """Yield the words of all actions."""
        waiting = [*self.on_init, *self.on_record, *(one for many in self.on_punctuate.values() for one in many)]
        for action in waiting:
            waiting += [*action.get("then", ()), *action.get("else", ())]
            yield action["do"]

    def stores(self) -> list[StoreBuilder]:
        stores = [key_value_store(self.handles, key=str)]
        return [*stores, key_value_store(self.store, key=str, value=int)] if self.store else stores

    def __call__(self) -> Processor:
        return ScriptProcessor(self)


class ScriptProcessor(Processor):
    """Runs a script. The handles store keeps what a Kafka processor would keep in memory."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.handles = context.store(self.script.handles)
        self.store: Any = context.store(self.script.store) if self.script.store else None
        self.calls_in_init = 0
        self.is_first_init = self.handles.get("is-initialised") is None
        self.is_initialising = True
        self.run(self.script.on_init, Record(None, None, None))  # type: ignore[arg-type]
        self.is_initialising = False
        self.handles.put("is-initialised", 1)

    def process(self, record: Record) -> None:
        self.run(self.script.on_record, record)

    def punctuate(self, now_ms: int, id_: str, type_: str) -> None:
        self.script.fired.append((type_, self.context.scheduled_ms))
        self.run(self.script.on_punctuate.get(id_, [{"do": "forward"}]), Record(id_, f"{id_}@{now_ms}", now_ms))

    def run(self, actions: list[Any], record: Record) -> None:
        for action in actions:
            # Kafka initialises a processor once. Here every epoch does, and only repeated schedule() calls are recognised (D7).
            if action["do"] == "schedule" or self.is_first_init or not self.is_initialising:
                getattr(self, f"do_{action['do']}")(action, record)

    def do_forward(self, action: dict[str, Any], record: Record) -> None:
        self.forward(action, record, record.value)

    def do_forward_times(self, action: dict[str, Any], record: Record) -> None:
        context = self.context
        times = f"ts={record.timestamp},stream={context.stream_time_ms},system={context.wall_clock_ms}"
        self.forward(action, record, times)

    def do_forward_headers(self, action: dict[str, Any], record: Record) -> None:
        self.forward(action, record, ",".join(name for name, _ in record.headers))

    def do_forward_count(self, action: dict[str, Any], record: Record) -> None:
        self.forward(action, record, self.store.get(record.key))

    def do_forward_store_all(self, action: dict[str, Any], record: Record) -> None:
        for key, value in self.store.all():
            self.forward(action, Record(key, value, record.timestamp), value)
            if action.get("clear"):
                self.store.delete(key)

    def do_store_count(self, _action: dict[str, Any], record: Record) -> None:
        self.store.put(record.key, (self.store.get(record.key) or 0) + 1)

    def do_store_put(self, action: dict[str, Any], record: Record) -> None:
        self.store.put(record.key, action.get("value", record.value))

    def do_store_delete(self, _action: dict[str, Any], record: Record) -> None:
        self.store.delete(record.key)

    def do_if(self, action: dict[str, Any], record: Record) -> None:
        chosen = "then" if predicate(action["pred"])(record.value) else "else"
        self.run(action.get(chosen, []), record)

    def do_throw(self, _action: dict[str, Any], _record: Record) -> None:
        message = "the script throws"
        raise RuntimeError(message)

    def do_schedule(self, action: dict[str, Any], _record: Record) -> None:
        id_, type_ = action["id"], PunctuationType(action["type"])
        start = action.get("start")
        is_first = type_ is PunctuationType.STREAM_TIME and self.context.stream_time_ms == UNKNOWN
        if start is None and is_first and action.get("aligned", True):
            start = 0  # Kafka 4's grid for schedules made before the first record (D2), if the scenario is not about it
        if self.is_initialising:
            name = f"{id_}/init/{self.calls_in_init}"
            self.calls_in_init += 1
        else:
            made = self.handles.get(f"made/{id_}") or 0
            self.handles.put(f"made/{id_}", made + 1)
            name = f"{id_}/{made}"
        self.context.schedule(
            f"{action['interval']}ms",
            type_,
            self.punctuate,
            name=name,
            start_time=None if start is None else f"{start}ms",
            args=(id_, action["type"]),
        )
        if not self.is_initialising or self.is_first_init:
            self.handles.put(f"handle/{id_}", name)

    def do_cancel(self, action: dict[str, Any], _record: Record) -> None:
        name = self.handles.get(f"handle/{action['id']}")
        if name is not None:
            self.context.cancellable(name).cancel()

    def forward(self, action: dict[str, Any], record: Record, value: Any) -> None:
        to = To.child(action["to"]) if "to" in action else None
        timestamp = record.timestamp
        if "ts_set" in action or "ts_add" in action:
            to = (to or To.all()).with_timestamp(action.get("ts_set", timestamp + action.get("ts_add", 0)))
        headers = record.headers + (((action["header"], b""),) if "header" in action else ())
        self.context.forward(
            Record(action.get("key", record.key), action.get("value", value), headers=headers),
            to=to,
        )
