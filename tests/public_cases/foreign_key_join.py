"""Genre and artist of each track that was bought, by the album that the track names."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/fk-joins/kstreams/code/tutorial-steps/dev"
INPUT = {
    "albums": """
{"id": 5, "title": "Physical Graffiti", "artist": "Led Zeppelin", "genre": "Rock"}
{"id": 6, "title": "Highway to Hell", "artist": "AC/DC", "genre": "Rock"}
{"id": 7, "title": "Radio", "artist": "LL Cool J", "genre": "Hip hop"}
{"id": 8, "title": "King of Rock", "artist": "Run-D.M.C", "genre": "Rap rock"}
""",
    "track-purchases": """
{"id": 100, "album_id": 5, "song_title": "Houses Of The Holy", "price": 0.99}
{"id": 101, "album_id": 8, "song_title": "King Of Rock", "price": 0.99}
{"id": 102, "album_id": 6, "song_title": "Shot Down In Flames", "price": 0.99}
{"id": 103, "album_id": 7, "song_title": "Rock The Bells", "price": 0.99}
{"id": 104, "album_id": 8, "song_title": "Can You Rock It Like This", "price": 0.99}
{"id": 105, "album_id": 6, "song_title": "Highway To Hell", "price": 0.99}
{"id": 106, "album_id": 5, "song_title": "Kashmir", "price": 0.99}
""",
}
LOGS = {
    "albums": {"key": "id", "timestamp": "tests.public_cases.times:first"},
    "track-purchases": {"key": "track", "columns": {"track": "id"}, "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "music-interest": """
{"id": "5-100", "genre": "Rock", "artist": "Led Zeppelin"}
{"id": "8-101", "genre": "Rap rock", "artist": "Run-D.M.C"}
{"id": "6-102", "genre": "Rock", "artist": "AC/DC"}
{"id": "7-103", "genre": "Hip hop", "artist": "LL Cool J"}
{"id": "8-104", "genre": "Rap rock", "artist": "Run-D.M.C"}
{"id": "6-105", "genre": "Rock", "artist": "AC/DC"}
{"id": "5-106", "genre": "Rock", "artist": "Led Zeppelin"}
""",
}


class Interest(NamedTuple):
    id: str
    genre: str
    artist: str


def interest(track_id: int, track: Any, album: Any) -> Interest:
    return Interest(f"{track.album_id}-{track_id}", album.genre, album.artist)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    albums, tracks = builder.table("albums", store="albums"), builder.table("track-purchases", store="tracks")
    interests = tracks.join(
        albums, interest, foreign_key=lambda _, track: track.album_id, store="interests", with_key=True
    )
    interests.to_stream().to("music-interest")
    return builder.build()
