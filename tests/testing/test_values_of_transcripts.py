"""Values of transcripts are what records of a run have: rows at any depth, dictionaries, and decimals."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest

from rewindow import StreamsBuilder, Topology
from rewindow.errors import ConfigError
from rewindow.testing.transcript import TranscriptError, check, load


class Total(NamedTuple):
    """What is sent for an order."""

    city: str
    amount: Decimal
    tags: dict[str, str]


def totals() -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream("orders")
    orders.map_values(
        lambda order: Total(order.user.address.city, sum(line.amount for line in order.lines), dict(order.tags)),
        value=Total,
    ).to("totals")
    return builder.build()


CASE = """\
name: nested
topology: tests.testing.test_values_of_transcripts:totals
transcript:
  - input:
      - orders
      - ann
      - user: {address: {city: Rome}}
        lines: [{amount: !decimal 1.10}, {amount: !decimal 2}]
        tags: !map {colour: red}
      - 1h
  - expect: [[totals, ann, {city: Rome, amount: AMOUNT, tags: {colour: red}}, 1h]]
"""


def played(folder: Path, amount: str) -> None:
    (folder / "case.yaml").write_text(CASE.replace("AMOUNT", amount))
    for case in load(folder / "case.yaml"):
        check(case, cut=True)


def test_nested_mappings_are_rows_unless_they_are_marked_and_decimals_are_exact(tmp_path: Path) -> None:
    played(tmp_path, "!decimal 3.10")
    with pytest.raises(TranscriptError, match=r"Decimal\('3.10'\)"):
        played(tmp_path, "!decimal 3.11")


@pytest.mark.parametrize(("tagged", "said"), [("!decimal abc", "!decimal needs a number"), ("!map [1]", "!map needs")])
def test_a_wrong_tag_is_named_with_its_place(tmp_path: Path, tagged: str, said: str) -> None:
    (tmp_path / "case.yaml").write_text(f"name: a\ntranscript:\n  - input: [orders, ann, {tagged}, 1h]\n")
    with pytest.raises(ConfigError, match=said):
        load(tmp_path / "case.yaml")
