"""A processor's store may have one key in several partitions, and `state diff` compares each. Without Spark."""

from __future__ import annotations

from pathlib import Path

from tests.bad_input.scene import FEED, hour, project_of, topology

COUNT = """\
class Count(Processor):
    def init(self, context):
        self.store = context.store("n")

    def process(self, record):
        self.store.put("total", (self.store.get("total") or 0) + 1)
"""
MODULE = topology(
    """
builder.add_store(key_value_store("n", key=str, value=int))
builder.stream("events").process(Count, stores=["n"], name="count")
""",
    before=COUNT,
)


def test_a_change_in_one_of_several_partitions_is_found(tmp_path: Path) -> None:
    bench = project_of(tmp_path, FEED, MODULE)
    for number, users in enumerate((("ann", "bob", "cyd"), ("ann", "cyd"), ("bob",))):
        bench.rows(f"h{number}", [row for row in hour(number) if row["user"] in users])
        bench.done("land activity", "run counts")
    changes = {}
    for runs in (("1", "2"), ("2", "3")):
        changes[runs] = [
            (one["key"], one["partition"], one["before"], one["after"])
            for one in bench.json(f"state diff counts n {' '.join(runs)}")["changes"]
        ]
    both = [change for found in changes.values() for change in found]
    assert all(key == {"key": "total"} for key, *_values in both)
    assert sorted(partition for _key, partition, *_values in both) == [0, 1]
    for (_key, _partition, before, after), more in zip(both, (8, 4), strict=True):
        assert after["value"] - before["value"] == more
    assert len(bench.json("state diff counts n 1 3")["changes"]) == 2
