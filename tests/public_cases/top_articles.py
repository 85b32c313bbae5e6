"""The most read articles of each industry and hour. The published users are random; they change no row."""

from __future__ import annotations

from typing import NamedTuple

from rewindow import StreamsBuilder, TimeWindows, Topology, Windowed

SOURCE = "https://github.com/confluentinc/kafka-streams-examples/blob/7b8c252054ce5de7d2d545cc2b2c944e0e0789f6/src/test/java/io/confluent/examples/streams/TopArticlesLambdaExampleTest.java"
INPUT = {
    "PageViews": """
{"user": "jo", "page": "news", "industry": "eng", "flags": "ARTICLE"}
{"user": "jo", "page": "news", "industry": "eng", "flags": "ARTICLE"}
{"user": "jo", "page": "news", "industry": "eng", "flags": "ARTICLE"}
{"user": "jo", "page": "random", "industry": "eng", "flags": "ARTICLE"}
{"user": "jo", "page": "random", "industry": "eng", "flags": "ARTICLE"}
{"user": "jo", "page": "stuff", "industry": "eng", "flags": "ARTICLE"}
{"user": "jo", "page": "index", "industry": "science", "flags": "ARTICLE"}
{"user": "jo", "page": "index", "industry": "science", "flags": "ARTICLE"}
{"user": "jo", "page": "index", "industry": "science", "flags": "ARTICLE"}
{"user": "jo", "page": "about", "industry": "science", "flags": "ARTICLE"}
{"user": "jo", "page": "about", "industry": "science", "flags": "ARTICLE"}
{"user": "jo", "page": "help", "industry": "science", "flags": "ARTICLE"}
""",
}
LOGS = {"PageViews": {"key": "user", "timestamp": "tests.public_cases.times:first"}}
EXPECTED = {
    "TopNewsPerIndustry": """
{"industry": "eng", "value": "news\\nrandom\\nstuff\\n"}
{"industry": "science", "value": "index\\nabout\\nhelp\\n"}
""",
}
LAST_OF = "industry"


class Article(NamedTuple):
    page: str
    industry: str


class Hour(NamedTuple):
    industry: str
    start_ms: int


class Views(NamedTuple):
    views: int
    page: str


def by_hour(article: Windowed, count: int) -> tuple[Hour, Views]:
    return Hour(article.key.industry, article.window.start_ms), Views(count, article.key.page)


def names(views: list[Views]) -> str:
    return "".join(f"{one.page}\n" for one in sorted(views, reverse=True))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    articles = builder.stream("PageViews").filter(lambda _, view: "ARTICLE" in view.flags)
    read = articles.select_key(lambda _, view: Article(view.page, view.industry), key=Article).group_by_key()
    counts = read.windowed_by(TimeWindows.of("1h", grace="0s")).count(store="views")
    hours = counts.group_by(by_hour, key=Hour, value=Views).aggregate(
        list,
        lambda _, one, views: [*views, one],
        lambda _, one, views: [other for other in views if other != one],
        store="hours",
        value=list[Views],
    )
    hours.map_values(names, value=str).to_stream().to("TopNewsPerIndustry")
    return builder.build()
