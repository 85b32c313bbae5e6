"""The recorded processors as `LegacyProcessor`: Kafka 4 removed the old API, so its rows are those of the current one."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import LegacyProcessor, Record, To
from tests.conformance import build, verdict
from tests.conformance.listed import listed_deviations
from tests.conformance.scenario import CARRIED, Case, read
from tests.conformance.script import Script, ScriptProcessor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

CASES = [
    pytest.param(case, id=case.name)
    for file in sorted(CARRIED.glob("*.jsonl"))
    for case in read(file)
    if case.mode == "driver" and any(node["op"] == "processor" for node in case.scenario["nodes"])
]


with pytest.deprecated_call():

    class LegacyScriptProcessor(ScriptProcessor, LegacyProcessor):
        """Runs a script with ``process(key, value)`` and ``forward(key, value, child)``."""

        def process(self, key: Any, value: Any) -> None:  # type: ignore[override]  # the old signature
            headers = self.context.headers  # type: ignore[attr-defined]  # a LegacyContext
            self.run(self.script.on_record, Record(key, value, self.context.timestamp, headers))

        def forward(self, action: dict[str, Any], record: Record, value: Any) -> None:
            key, value, timestamp = action.get("key", record.key), action.get("value", value), record.timestamp
            if "header" in action:  # the old forward has no headers to give
                super().forward(action, record, value)
            elif "ts_set" in action or "ts_add" in action:
                to = To.child(action["to"]) if "to" in action else To.all()
                at = action.get("ts_set", timestamp + action.get("ts_add", 0))
                self.context.forward(key, value, to.with_timestamp(at))  # type: ignore[call-arg, arg-type]
            else:
                self.context.forward(key, value, *([action["to"]] if "to" in action else []))  # type: ignore[call-arg, arg-type]


class LegacyScript(Script):
    """A script whose processor has the old signatures."""

    def __call__(self) -> ScriptProcessor:
        return LegacyScriptProcessor(self)


@pytest.mark.parametrize("mode", ["whole", "cut"])
@pytest.mark.parametrize("case", CASES)
def test_a_ported_processor_sends_what_kafka_sends(case: Case, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "Script", LegacyScript)
    judged = verdict.judge(case, cut=mode == "cut")
    listed = listed_deviations().get((case.file, case.name))
    assert judged.status == (verdict.DEVIATING if listed else verdict.PASSED), judged.reason
    assert not listed or judged.number == listed.number
