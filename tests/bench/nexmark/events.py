"""The events of Nexmark, with the distributions of its public description.

Of 50 events one is a new person, three are new auctions and 46 are bids. Event ``n`` happens ``n / 10,000`` seconds after the
start and arrives up to a second later. Half of the bids are for the newest hundredth auction, the others for one of the last
hundred; three of four are by the newest hundredth person, the others by one of the last thousand. Some of these do not exist yet.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Array = np.ndarray[Any, Any]
RATE = 10_000
"""Events per second."""
START_MS = 1_767_225_600_000  # 2026-01-01
LONGEST_DELAY_MS = 1_000
GROUP, AUCTIONS = 50, 3
"""Of a group of events the first is a person, the next three are auctions."""
FIRST_ID = 1_000
HOT = 100
"""One in a hundred auctions and persons is hot while it is the newest such one."""
IN_FLIGHT, ACTIVE, LEAD = 100, 1_000, 10
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
TIME = pa.timestamp("ms", "UTC")


def write_events(folder: Path, events: int, *, seed: int = 1, stretched: int = 1) -> None:
    """Write the folders ``persons``, ``auctions`` and ``bids`` below a folder, each in order of arrival.

    ``stretched``: how many times as long the events take.
    """
    rng = np.random.default_rng(seed)
    number = np.arange(events)
    group, number_in_group = np.divmod(number, GROUP)
    happened = START_MS + number * 1_000 * stretched // RATE
    arrived = happened + rng.integers(1, LONGEST_DELAY_MS, events)
    order = np.argsort(arrived, kind="stable")
    group, number_in_group, happened, arrived = (
        column[order] for column in (group, number_in_group, happened, arrived)
    )
    for name, part, of in (
        ("persons", number_in_group == 0, _persons),
        ("auctions", (number_in_group > 0) & (number_in_group <= AUCTIONS), _auctions),
        ("bids", number_in_group > AUCTIONS, _bids),
    ):
        columns = of(group[part], number_in_group[part], rng)
        times = {"happened_at": pa.array(happened[part]).cast(TIME), "arrived_at": pa.array(arrived[part]).cast(TIME)}
        (folder / name).mkdir(parents=True)
        pq.write_table(pa.table({**columns, **times}), folder / name / "events.parquet")


def _persons(group: Array, number_in_group: Array, rng: np.random.Generator) -> dict[str, Any]:
    del number_in_group
    return {
        "id": FIRST_ID + group,
        "name": [f"person {one}" for one in group.tolist()],
        "state": np.array(STATES)[rng.integers(0, len(STATES), len(group))],
    }


def _auctions(group: Array, number_in_group: Array, rng: np.random.Generator) -> dict[str, Any]:
    seller = np.where(rng.integers(0, 4, len(group)) > 0, group // HOT * HOT, _active_person(group, rng))
    return {
        "id": FIRST_ID + group * AUCTIONS + number_in_group - 1,
        "seller": FIRST_ID + seller,
        "category": 10 + rng.integers(0, 5, len(group)),
        "initial_bid": _price(len(group), rng),
    }


def _bids(group: Array, number_in_group: Array, rng: np.random.Generator) -> dict[str, Any]:
    del number_in_group
    size, newest = len(group), group * AUCTIONS + AUCTIONS - 1
    oldest = np.maximum(newest - IN_FLIGHT, 0)
    auction = np.where(rng.integers(0, 2, size) > 0, newest // HOT * HOT, rng.integers(oldest, newest + 1 + LEAD))
    bidder = np.where(rng.integers(0, 4, size) > 0, group // HOT * HOT + 1, _active_person(group, rng))
    return {"auction": FIRST_ID + auction, "bidder": FIRST_ID + bidder, "price": _price(size, rng)}


def _active_person(group: Array, rng: np.random.Generator) -> Array:
    active = np.minimum(group + 1, ACTIVE)
    return group + 1 - active + rng.integers(0, active + LEAD)


def _price(size: int, rng: np.random.Generator) -> Array:
    """Return prices in cents, from 1 to 1,000,000 dollars, uniform in their logarithm."""
    return np.rint(10 ** (rng.random(size) * 6) * 100).astype(np.int64)
