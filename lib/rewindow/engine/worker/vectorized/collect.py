"""`Collect` over whole columns. A group's state is its list's JSON text, as in the store but without the brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.vectorized.arrays import objects, texts_column
from rewindow.engine.worker.vectorized.canonical_json import Texts, text_bytes
from rewindow.engine.worker.vectorized.folds import Fold, Operands, Rows
from rewindow.engine.worker.vectorized.group_frame import Array, Column, GroupFrame


class CollectFold(Fold):
    """The list of the values that are not null, in row order. It also stores what the last row added."""

    state_types, result_type = ("json",), "json"
    operand: Texts

    def __init__(self, name: str, operand: Texts) -> None:
        super().__init__(name)
        self.operand = operand

    def columns(self) -> Mapping[str, Column]:
        """See `Fold`."""
        return {self.name: (np.object_, ""), f"{self.name}.last": (np.object_, "")}

    def take(self, frame: GroupFrame, rows: Rows, operands: Operands) -> None:
        """See `Fold`."""
        texts, valid = operands[self.operand]
        frame[f"{self.name}.last"][rows.slots] = texts if valid is None else np.where(valid, texts, "")
        inverse = rows.inverse
        if valid is not None:
            inverse, texts = inverse[valid], texts[valid]
        order = np.argsort(inverse, kind="stable")
        items = texts[order].tolist()
        ends = np.cumsum(np.bincount(inverse, minlength=len(rows.distinct))).tolist()
        state = frame[self.name]
        before = state[rows.distinct].tolist()
        starts = [0, *ends]
        lists = [_joined(one, *items[first:end]) for one, first, end in zip(before, starts, ends, strict=False)]
        state[rows.distinct] = objects(lists)

    def merge(self, frame: GroupFrame, slots: Array, others: Array) -> None:
        """See `Fold`: the items of ``others`` come later."""
        state = frame[self.name]
        pairs = zip(state[slots].tolist(), state[others].tolist(), strict=True)
        state[slots] = objects([_joined(one, *([other] if other else [])) for one, other in pairs])

    def restore(self, frame: GroupFrame, slots: Array, state: Sequence[pa.Array]) -> None:
        """See `Fold`."""
        frame[self.name][slots] = objects([text[1:-1] for text in state[0].to_pylist()])

    def state(self, frame: GroupFrame, slots: Array) -> list[pa.Array]:
        """See `Fold`. Raises `UnfitError` if the texts exceed an Arrow array."""
        return [_lists(frame[self.name][slots].tolist())]

    def before(self, frame: GroupFrame, slots: Array) -> pa.Array:
        """See `Fold`."""
        pairs = zip(frame[self.name][slots].tolist(), frame[f"{self.name}.last"][slots].tolist(), strict=True)
        return _lists([text[: -len(last)].removesuffix(",") if last else text for text, last in pairs])

    def sizes(self, frame: GroupFrame, slots: Array) -> tuple[Array, Array]:
        """See `Fold`: the size of a list is the size of its text."""
        return text_bytes(self.result(frame, slots), "json"), text_bytes(self.before(frame, slots), "json")


def _joined(one: str, *items: str) -> str:
    return ",".join((one, *items)) if one else ",".join(items)


def _lists(texts: Sequence[str]) -> pa.Array:
    return texts_column([f"[{text}]" for text in texts], "json")
