"""L3: batch size, the order of tasks and Python's hash seed change nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples
from tests.properties.test_cuts import GLIDING, replayed
from tests.properties.topologies import TOPICS, build, plans

ROOT = Path(__file__).parent.parent.parent


@given(plans(), epochs(TOPICS), GLIDING, st.integers(1, 5))
@examples(60)
def test_batches_and_the_order_of_tasks_make_no_difference(
    steps: list[tuple[Any, ...]], given_epochs: list[Epoch], semantics: Semantics, batch: int
) -> None:
    unvaried = replayed(steps, given_epochs, [], semantics)
    varied = replayed(steps, given_epochs, [], semantics, batch=batch, backwards=True)
    for one, other in zip(unvaried, varied, strict=True):
        assert one == other


SCRIPT = """
import random
from hashlib import sha256
from rewindow import StreamsBuilder, Sum, TimeWindows, until_window_closes
from rewindow.testing import Epoch, LocalReplay

builder = StreamsBuilder()
stream = builder.stream("left").merge(builder.stream("right"))
(
    stream.group_by(lambda key, value: key[:2])
    .windowed_by(TimeWindows.of("20ms", grace="5ms"))
    .aggregate({"total": Sum()}, store="totals")
    .suppress(until_window_closes())
    .to_stream()
    .to("finals")
)
stream.group_by_key().count(store="counts").to_stream().to("counts")
die = random.Random(7)
epochs = [
    Epoch(tuple(
        (die.choice(["left", "right"]), f"key-{die.randrange(40)}", die.random(), 100 * number + die.randrange(150))
        for _ in range(120)
    ), 100 * number)
    for number in range(4)
]
replay = LocalReplay(builder.build(), partitions=3)
for epoch in epochs:
    replay.run([epoch])
print(sha256(repr((replay.sent, replay.checkpoints(), replay.metrics)).encode()).hexdigest(), len(replay.sent))
"""


def test_the_seed_of_hashes_makes_no_difference() -> None:
    printed = set()
    for seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "lib")}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        printed.add(done.stdout)
    assert len(printed) == 1
    assert int(printed.pop().split()[1]) > 400


def test_a_random_topology_is_worth_its_name() -> None:
    steps = [("finals", 0, 10, 10, 0), ("rekey", 2, 2), ("total", 3, 2)]
    assert len(build(steps).sub_topologies()) == 4
