"""Bounds of vectorized execution that record execution decides: 64 bits of a restored sum, rows of a store."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest

from rewindow import Count, Mean, SessionWindows, StreamsBuilder, Sum, TimeWindows, until_window_closes
from rewindow.contracts.tasks import Execution
from rewindow.streams.serde.schema import Column
from rewindow.streams.settings import Limits, Settings
from tests.engine.executions import replay, write_log
from tests.engine.test_vectorized_execution import both, case
from tests.refusals import refused


@pytest.mark.parametrize("aggregate", [Sum("amount"), Mean("amount")])
def test_a_restored_sum_that_no_longer_fits_falls_back_after_a_task_with_small_sums(tmp_path, aggregate):
    amounts = [1, 2, 4 * 10**18, 1, 2 * 10**18, 1, 4 * 10**18, 1]
    rows = [(time, "k", Decimal(amount)) for time, amount in enumerate(amounts)]
    rows += [(30, "z", Decimal(1)), (31, "z", Decimal(1))]
    runs = both(case(aggregate, Column("amount", "decimal(20,0)"), rows, 5), tmp_path, list(pairwise(range(6))))
    assert [run.report.is_vectorized for run in runs][:4] == [True, True, True, False]


@pytest.mark.parametrize("windows", [TimeWindows.of("10ms", grace="5ms"), SessionWindows.of("2ms", grace="5ms")])
def test_a_store_with_too_many_rows_has_the_error_of_record_execution(tmp_path, windows):
    builder = StreamsBuilder()
    builder.stream("events").group_by_key().windowed_by(windows).count(store="windows").suppress(
        until_window_closes()
    ).to_stream().to("finals")
    rows = [(time, f"key-{time}", 1) for time in range(8)]
    small = case(Count(), Column("amount", "long"), rows)._replace(topology=builder.build())
    enough, too_few = (small._replace(settings=Settings(limits=Limits(store_rows=most))) for most in (8, 7))
    (found,) = both(enough, tmp_path / "enough", [(0, 1)])
    assert found.report.is_vectorized
    with refused("task-limit-exceeded", nodes="windows", excess="the store 'windows' has 8 rows"):
        replay(too_few, write_log(too_few, tmp_path / "log"), tmp_path / "few", [(0, 1)], [Execution.AUTO])
