"""`Collect` over whole columns: the state of a group is the text that its list has in the store, without the brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.vectorized.arrays import objects, texts_column
from rewindow.engine.worker.vectorized.canonical_json import Texts, text_bytes
from rewindow.engine.worker.vectorized.folds import Fold, Operands, Rows
from rewindow.engine.worker.vectorized.slots import Array, Column, Frame


class CollectFold(Fold):
    """The list of the values that are not null, in the order in which they came.

    Beside the state it has what the last row added.
    """

    state_types, result_type = ("json",), "json"
    operand: Texts

    def __init__(self, name: str, operand: Texts) -> None:
        super().__init__(name)
        self.operand = operand

    def columns(self) -> Mapping[str, Column]:
        """See `Fold`."""
        return {self.name: (np.object_, ""), f"{self.name}.last": (np.object_, "")}

    def take(self, frame: Frame, rows: Rows, operands: Operands) -> None:
        """See `Fold`."""
        texts, valid = operands[self.operand]
        frame[f"{self.name}.last"][rows.slots] = texts if valid is None else np.where(valid, texts, "")
        places = rows.places
        if valid is not None:
            places, texts = places[valid], texts[valid]
        order = np.argsort(places, kind="stable")
        items = texts[order].tolist()
        ends = np.cumsum(np.bincount(places, minlength=len(rows.distinct))).tolist()
        state = frame[self.name]
        before = state[rows.distinct].tolist()
        starts = [0, *ends]
        lists = [_joined(one, *items[first:end]) for one, first, end in zip(before, starts, ends, strict=False)]
        state[rows.distinct] = objects(lists)

    def merge(self, frame: Frame, slots: Array, others: Array) -> None:
        """See `Fold`: the other groups' items come after."""
        state = frame[self.name]
        pairs = zip(state[slots].tolist(), state[others].tolist(), strict=True)
        state[slots] = objects([_joined(one, *([other] if other else [])) for one, other in pairs])

    def restore(self, frame: Frame, slots: Array, state: Sequence[pa.Array]) -> None:
        """See `Fold`."""
        frame[self.name][slots] = objects([text[1:-1] for text in state[0].to_pylist()])

    def state(self, frame: Frame, slots: Array) -> list[pa.Array]:
        """See `Fold`. Raises `UnfitError` for more than an Arrow array has room for."""
        return [_lists(frame[self.name][slots].tolist())]

    def before(self, frame: Frame, slots: Array) -> pa.Array:
        """See `Fold`."""
        pairs = zip(frame[self.name][slots].tolist(), frame[f"{self.name}.last"][slots].tolist(), strict=True)
        return _lists([text[: -len(last)].removesuffix(",") if last else text for text, last in pairs])

    def sizes(self, frame: Frame, slots: Array) -> tuple[Array, Array]:
        """See `Fold`: a list has no bytes but those of its text."""
        return text_bytes(self.result(frame, slots), "json"), text_bytes(self.before(frame, slots), "json")


def _joined(one: str, *items: str) -> str:
    return ",".join((one, *items)) if one else ",".join(items)


def _lists(texts: Sequence[str]) -> pa.Array:
    return texts_column([f"[{text}]" for text in texts], "json")
