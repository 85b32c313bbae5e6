"""Stream-stream joins: examples J01 to J09, J11, J16 and J20 to J24 of the semantics reference, D12, D18 and D22."""

from __future__ import annotations

import pytest

from rewindow import JoinWindows
from rewindow.testing import TopologyTestDriver
from tests.dsl.joined import Step, play
from tests.dsl.stream_joins import topology, within

J07 = [
    ("L", "k1", "a", 0, []),
    ("L", "k2", "b", 5, []),
    ("L", "k3", "c", 8, []),
    ("L", "k4", "d", 12, ["k1:a-null@0"]),
    ("L", "k5", "e", 16, ["k2:b-null@5"]),
    ("L", "k6", "f", 18, []),
    ("L", "k7", "g", 19, ["k3:c-null@8"]),
]
EXAMPLES: dict[str, tuple[str, JoinWindows, list[Step]]] = {
    "J01 the bounds are part of the window": (
        "inner",
        within(10),
        [
            ("L", "k", "a", 0, []),
            ("R", "k", "x", 10, ["k:a-x@10"]),
            ("R", "k", "y", 11, []),
            ("L", "k", "b", 21, ["k:b-y@21"]),
            ("L", "k", "c", 22, []),
            ("R", "k", "z", 12, ["k:b-z@21", "k:c-z@22"]),
        ],
    ),
    "J02 a lone record is sent once its window is past": (
        "left",
        within(10),
        [("L", "k", "a", 0, []), ("R", "q", "x", 10, []), ("R", "q", "x", 11, ["k:a-null@0"])],
    ),
    "J03 and its grace": (
        "left",
        within(10, grace=5),
        [("L", "k", "a", 0, []), ("R", "q", "x", 15, []), ("R", "q", "x", 16, ["k:a-null@0"])],
    ),
    "J04 a late record waits as long as any (D12)": (
        "left",
        within(10, grace=5),
        [
            ("L", "z", "z", 20, []),
            ("L", "k", "a", 9, []),
            ("R", "k", "x", 9, ["k:a-x@9"]),
            ("L", "m", "b", 9, []),
            ("L", "y", "y", 25, ["m:b-null@9"]),
        ],
    ),
    "one that comes after its time is sent at once, and joined with what is later still": (
        "left",
        within(10, grace=5),
        [
            ("L", "z", "z", 25, []),
            ("L", "k", "a", 10, []),
            ("L", "k", "b", 9, ["k:b-null@9"]),
            ("R", "k", "x", 9, ["k:b-x@9", "k:a-x@10"]),
        ],
    ),
    "J05 right before left, then by key bytes": (
        "outer",
        within(10),
        [
            ("L", "k", "a", 0, []),
            ("R", "q", "x", 0, []),
            ("R", "b", "y", 0, []),
            ("L", "b2", "c", 0, []),
            ("L", "z", "d", 11, ["b:null-y@0", "q:null-x@0", "b2:c-null@0", "k:a-null@0"]),
        ],
    ),
    "J06 one side only": (
        "left",
        within(0, 10),
        [("L", "k", "a", 5, []), ("R", "k", "x", 4, []), ("R", "k", "y", 15, ["k:a-y@15"]), ("R", "k", "z", 16, [])],
    ),
    "J07 none comes too late (D12)": ("left", within(10), J07),
    "J08 nulls, left": (
        "left",
        within(10),
        [
            ("L", None, "a", 0, ["None:a-null@0"]),
            ("L", "k", None, 0, []),
            ("R", None, "x", 0, []),
            ("R", "k", None, 0, []),
        ],
    ),
    "J08 nulls, outer": (
        "outer",
        within(10),
        [("R", None, "x", 3, ["None:null-x@3"]), ("L", None, "a", 1, ["None:a-null@1"]), ("L", None, None, 1, [])],
    ),
    "J09 late records are joined as far as their partners are retained": (
        "inner",
        within(10),
        [
            ("L", "k", "a", 0, []),
            ("L", "k", "b", 19, []),
            ("R", "k", "x", 5, ["k:a-x@5"]),
            ("L", "k", "c", 20, []),
            ("R", "k", "y", 5, []),
        ],
    ),
    "J11 partners come by time, then as they came, and again": (
        "inner",
        within(10),
        [
            ("L", "k", "a", 5, []),
            ("L", "k", "b", 5, []),
            ("L", "k", "c", 3, []),
            ("R", "k", "x", 6, ["k:c-x@6", "k:a-x@6", "k:b-x@6"]),
            ("R", "k", "y", 6, ["k:c-y@6", "k:a-y@6", "k:b-y@6"]),
        ],
    ),
    "J20 a record without a value moves the clock, and what is due is sent (D12)": (
        "left",
        within(10),
        [
            ("L", "k", "a", 0, []),
            ("L", None, "n", 50, ["k:a-null@0", "None:n-null@50"]),
            ("L", "j", "b", 30, ["j:b-null@30"]),
            ("L", "m", "c", 50, []),
            ("R", "m", None, 61, ["m:c-null@50"]),
        ],
    ),
    "J21 two of one key and time find their partner together": (
        "outer",
        within(10),
        [
            ("L", "k", "l1", 0, []),
            ("L", "k", "l2", 0, []),
            ("R", "k", "r", 5, ["k:l1-r@5", "k:l2-r@5"]),
            ("R", "k", "r2", 20, []),
            ("L", "q", "l3", 31, ["k:null-r2@20"]),
        ],
    ),
    "J23 the bound of a late record": (
        "left",
        within(10),
        [
            ("L", "z", "z", 20, []),
            ("L", "a", "a", 10, []),
            ("L", "b", "b", 9, ["b:b-null@9"]),
            ("L", "z", "z", 21, ["a:a-null@10"]),
        ],
    ),
    "J24 what is due comes before a record's own partners": (
        "left",
        within(10),
        [("L", "k", "a", 0, []), ("L", "k", "b", 5, []), ("R", "k", "r", 11, ["k:a-null@0", "k:b-r@11"])],
    ),
    "the right record is later only": (
        "outer",
        within(-2, 10),
        [
            ("L", "k", "a", 20, []),
            ("R", "k", "x", 21, ["k:null-x@21"]),
            ("R", "k", "y", 22, ["k:a-y@22"]),
            ("R", "k", "z", 30, ["k:a-z@30"]),
            ("R", "k", "w", 31, ["k:null-w@31"]),
        ],
    ),
}


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(example: str, cut: bool) -> None:  # noqa: FBT001 - a parameter of the test
    how, windows, steps = EXAMPLES[example]
    play(TopologyTestDriver(topology(how, windows)), steps, cut=cut)
