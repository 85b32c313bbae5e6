"""Every five seconds of stream time the user with the longest logins; every twenty of the wall clock all start again."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, Topology, key_value_store

SOURCE = "https://github.com/confluentinc/tutorials/tree/0cadb2292636b7e71323b9b39b49f86509196f77/kafka-streams-schedule-operations/kstreams"
INPUT = {
    "punctuation-input": """
{"logInTime": 5, "userId": "user-1", "appId": "test-page", "at": 1758036961000}
{"logInTime": 5, "userId": "user-2", "appId": "test-page", "at": 1758036963000}
{"logInTime": 5, "userId": "user-1", "appId": "test-page", "at": 1758036965000}
{"logInTime": 5, "userId": "user-3", "appId": "test-page", "at": 1758036967000}
{"logInTime": 5, "userId": "user-2", "appId": "test-page", "at": 1758036969000}
""",
}
LOGS = {
    "punctuation-input": {"key": "userId", "timestamp": "at"},
}
EXPECTED = {
    "punctuation-output": """
{"key": "user-1 @Tue Sep 16 11:36:01 EDT 2025", "value": 5}
{"key": "user-1 @Tue Sep 16 11:36:05 EDT 2025", "value": 10}
""",
}


def date(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, ZoneInfo("America/New_York")).strftime("%a %b %d %H:%M:%S %Z %Y")


class LoginTimes(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.times = context.store("logintime-store")
        context.schedule("5s", PunctuationType.STREAM_TIME, self.report, name="report", start_time="0s")
        context.schedule("20s", PunctuationType.WALL_CLOCK_TIME, self.reset, name="reset")

    def process(self, record: Record) -> None:
        time = record.value.logInTime
        before = self.times.put_if_absent(record.key, time)
        if before is not None:
            self.times.put(record.key, before + time)

    def report(self, now_ms: int) -> None:
        user, longest = max(self.times.all(), key=lambda row: row[1])
        self.context.forward(Record(f"{user} @{date(now_ms)}", longest, now_ms))

    def reset(self, now_ms: int) -> None:
        self.times.put_many({user: 0 for user, _ in self.times.all()})


def build_topology() -> Topology:
    builder = StreamsBuilder()
    store = key_value_store("logintime-store", key=str, value=int)
    logins = builder.stream("punctuation-input")
    logins.process(LoginTimes, name="login-times", stores=[store], key=str, value=int).to("punctuation-output")
    return builder.build()
