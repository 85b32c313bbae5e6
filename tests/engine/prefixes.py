"""Python functions in front of windows, as strategies: filters, mappers of several result types, and mistakes."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from rewindow import Collect, Count, First, Last, Max, Mean, Min, Sum


class Made(NamedTuple):
    """What the mappers return."""

    whole: int | None
    real: float | None
    flag: bool | None
    note: str | None


def made(value: Any) -> Made:
    return Made(value.whole, value.real, value.flag, value.note)


def doubled(value: Any) -> Made:
    return Made(
        None if value.whole is None else value.whole * 2, -(value.real or 0.0), not value.flag, f"{value.note}!"
    )


def of_two_types(value: Any) -> Made:
    """Return a whole number for a real one now and then, as careless code does: only record execution can keep it."""
    return Made(value.whole, value.whole if value.flag else value.real, value.flag, value.note)


def nothing_now_and_then(value: Any) -> Any:
    return None if value.flag else made(value)


def with_key(key: Any, value: Any) -> Made:
    return Made(value.whole, value.real, key is None, f"{key}")


ON_MADE = st.one_of(
    st.just(Count()),
    st.builds(Sum, st.sampled_from(["whole", "real"])),
    st.builds(Mean, st.sampled_from(["whole", "real"])),
    *(st.builds(one, st.sampled_from(["whole", "real", "flag", "note"])) for one in (Min, Max, First, Last)),
    st.builds(Collect, st.sampled_from([None, "whole", "real", "note"])),
)
BEFORE = [
    "whole > 0 or real <= 0.25",
    "select whole, real, flag, note",
    lambda stream: stream.filter(lambda key, value: key is not None and (value.whole or 0) % 3 != 1),
    lambda stream: stream.filter_not(lambda _, value: value.note),
    lambda stream: stream.peek(lambda key, value: (key, value)),
]
MAPPERS = [
    lambda stream: stream.map_values(made, value=Made),
    lambda stream: stream.map_values(doubled),
    lambda stream: stream.map_values(with_key, with_key=True, value=Made),
    lambda stream: stream.flat_map_values(lambda value: [made(value)] * ((value.whole or 0) % 3), value=Made),
    lambda stream: stream.flat_map_values(lambda value: (doubled(value) for _ in range(2)), value=Made),
    lambda stream: stream.map_values(of_two_types, value=Made),
    lambda stream: stream.map_values(nothing_now_and_then, value=Made),
]
AFTER = [
    "whole >= 0",
    "not flag",
    lambda stream: stream.filter(lambda _, value: value is None or value.real != 7.0),
    lambda stream: stream.map_values(lambda value: value, value=Made),
    "select whole, real, flag, note",
]


def chains_of_functions() -> st.SearchStrategy[list[Any]]:
    """Generate operators in front of windows, at least one of them a mapper."""
    few: Any = {"max_size": 2}
    return st.tuples(
        st.lists(st.sampled_from(BEFORE), **few), st.sampled_from(MAPPERS), st.lists(st.sampled_from(AFTER), **few)
    ).map(lambda parts: [*parts[0], parts[1], *parts[2]])
