"""How many messages a topic has."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/count-messages/ksql/code"
INPUT = {
    "pageviews": """
{"key": "1", "at": 1600341475094, "viewtime": 1, "userid": "User_7", "pageid": "Page_47"}
{"key": "11", "at": 1600341475206, "viewtime": 11, "userid": "User_8", "pageid": "Page_47"}
{"key": "21", "at": 1600341475478, "viewtime": 21, "userid": "User_7", "pageid": "Page_64"}
{"key": "31", "at": 1600341475955, "viewtime": 31, "userid": "User_7", "pageid": "Page_29"}
{"key": "41", "at": 1600341476073, "viewtime": 41, "userid": "User_4", "pageid": "Page_41"}
{"key": "51", "at": 1600341476547, "viewtime": 51, "userid": "User_6", "pageid": "Page_68"}
{"key": "61", "at": 1600341476659, "viewtime": 61, "userid": "User_5", "pageid": "Page_17"}
{"key": "71", "at": 1600341476677, "viewtime": 71, "userid": "User_1", "pageid": "Page_60"}
{"key": "81", "at": 1600341476727, "viewtime": 81, "userid": "User_4", "pageid": "Page_80"}
{"key": "91", "at": 1600341476886, "viewtime": 91, "userid": "User_8", "pageid": "Page_90"}
{"key": "101", "at": 1600341477316, "viewtime": 101, "userid": "User_9", "pageid": "Page_33"}
{"key": "111", "at": 1600341477503, "viewtime": 111, "userid": "User_7", "pageid": "Page_50"}
{"key": "121", "at": 1600341477758, "viewtime": 121, "userid": "User_6", "pageid": "Page_10"}
{"key": "131", "at": 1600341478251, "viewtime": 131, "userid": "User_4", "pageid": "Page_75"}
{"key": "141", "at": 1600341478450, "viewtime": 141, "userid": "User_3", "pageid": "Page_13"}
{"key": "151", "at": 1600341478512, "viewtime": 151, "userid": "User_6", "pageid": "Page_28"}
{"key": "161", "at": 1600341478868, "viewtime": 161, "userid": "User_2", "pageid": "Page_47"}
{"key": "171", "at": 1600341479027, "viewtime": 171, "userid": "User_3", "pageid": "Page_44"}
{"key": "181", "at": 1600341479064, "viewtime": 181, "userid": "User_1", "pageid": "Page_42"}
{"key": "191", "at": 1600341479462, "viewtime": 191, "userid": "User_1", "pageid": "Page_59"}
{"key": "201", "at": 1600341479532, "viewtime": 201, "userid": "User_1", "pageid": "Page_30"}
{"key": "211", "at": 1600341480014, "viewtime": 211, "userid": "User_1", "pageid": "Page_47"}
{"key": "221", "at": 1600341480252, "viewtime": 221, "userid": "User_2", "pageid": "Page_23"}
{"key": "231", "at": 1600341480652, "viewtime": 231, "userid": "User_9", "pageid": "Page_97"}
{"key": "241", "at": 1600341481044, "viewtime": 241, "userid": "User_7", "pageid": "Page_18"}
{"key": "251", "at": 1600341481304, "viewtime": 251, "userid": "User_1", "pageid": "Page_22"}
{"key": "261", "at": 1600341481749, "viewtime": 261, "userid": "User_5", "pageid": "Page_35"}
{"key": "271", "at": 1600341482080, "viewtime": 271, "userid": "User_5", "pageid": "Page_13"}
{"key": "281", "at": 1600341482470, "viewtime": 281, "userid": "User_3", "pageid": "Page_33"}
{"key": "291", "at": 1600341482957, "viewtime": 291, "userid": "User_2", "pageid": "Page_41"}
{"key": "301", "at": 1600341483102, "viewtime": 301, "userid": "User_3", "pageid": "Page_40"}
{"key": "311", "at": 1600341483115, "viewtime": 311, "userid": "User_3", "pageid": "Page_24"}
{"key": "321", "at": 1600341483594, "viewtime": 321, "userid": "User_5", "pageid": "Page_88"}
{"key": "331", "at": 1600341483978, "viewtime": 331, "userid": "User_1", "pageid": "Page_18"}
{"key": "341", "at": 1600341484149, "viewtime": 341, "userid": "User_5", "pageid": "Page_35"}
{"key": "351", "at": 1600341484582, "viewtime": 351, "userid": "User_1", "pageid": "Page_85"}
{"key": "361", "at": 1600341484880, "viewtime": 361, "userid": "User_1", "pageid": "Page_29"}
{"key": "371", "at": 1600341485041, "viewtime": 371, "userid": "User_1", "pageid": "Page_40"}
{"key": "381", "at": 1600341485271, "viewtime": 381, "userid": "User_3", "pageid": "Page_29"}
{"key": "391", "at": 1600341485570, "viewtime": 391, "userid": "User_4", "pageid": "Page_15"}
{"key": "401", "at": 1600341485759, "viewtime": 401, "userid": "User_2", "pageid": "Page_27"}
{"key": "411", "at": 1600341485951, "viewtime": 411, "userid": "User_9", "pageid": "Page_22"}
""",
}
LOGS = {
    "pageviews": {"key": "key", "timestamp": "at"},
}
EXPECTED = {
    "MSG_COUNT": """
{"key": "X", "value": 1, "_timestamp": 1600341475094}
{"key": "X", "value": 2, "_timestamp": 1600341475206}
{"key": "X", "value": 3, "_timestamp": 1600341475478}
{"key": "X", "value": 4, "_timestamp": 1600341475955}
{"key": "X", "value": 5, "_timestamp": 1600341476073}
{"key": "X", "value": 6, "_timestamp": 1600341476547}
{"key": "X", "value": 7, "_timestamp": 1600341476659}
{"key": "X", "value": 8, "_timestamp": 1600341476677}
{"key": "X", "value": 9, "_timestamp": 1600341476727}
{"key": "X", "value": 10, "_timestamp": 1600341476886}
{"key": "X", "value": 11, "_timestamp": 1600341477316}
{"key": "X", "value": 12, "_timestamp": 1600341477503}
{"key": "X", "value": 13, "_timestamp": 1600341477758}
{"key": "X", "value": 14, "_timestamp": 1600341478251}
{"key": "X", "value": 15, "_timestamp": 1600341478450}
{"key": "X", "value": 16, "_timestamp": 1600341478512}
{"key": "X", "value": 17, "_timestamp": 1600341478868}
{"key": "X", "value": 18, "_timestamp": 1600341479027}
{"key": "X", "value": 19, "_timestamp": 1600341479064}
{"key": "X", "value": 20, "_timestamp": 1600341479462}
{"key": "X", "value": 21, "_timestamp": 1600341479532}
{"key": "X", "value": 22, "_timestamp": 1600341480014}
{"key": "X", "value": 23, "_timestamp": 1600341480252}
{"key": "X", "value": 24, "_timestamp": 1600341480652}
{"key": "X", "value": 25, "_timestamp": 1600341481044}
{"key": "X", "value": 26, "_timestamp": 1600341481304}
{"key": "X", "value": 27, "_timestamp": 1600341481749}
{"key": "X", "value": 28, "_timestamp": 1600341482080}
{"key": "X", "value": 29, "_timestamp": 1600341482470}
{"key": "X", "value": 30, "_timestamp": 1600341482957}
{"key": "X", "value": 31, "_timestamp": 1600341483102}
{"key": "X", "value": 32, "_timestamp": 1600341483115}
{"key": "X", "value": 33, "_timestamp": 1600341483594}
{"key": "X", "value": 34, "_timestamp": 1600341483978}
{"key": "X", "value": 35, "_timestamp": 1600341484149}
{"key": "X", "value": 36, "_timestamp": 1600341484582}
{"key": "X", "value": 37, "_timestamp": 1600341484880}
{"key": "X", "value": 38, "_timestamp": 1600341485041}
{"key": "X", "value": 39, "_timestamp": 1600341485271}
{"key": "X", "value": 40, "_timestamp": 1600341485570}
{"key": "X", "value": 41, "_timestamp": 1600341485759}
{"key": "X", "value": 42, "_timestamp": 1600341485951}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    views = builder.stream("pageviews").select_key(lambda _key, _view: "X", key=str)
    views.group_by_key().count(store="views").to_stream().to("MSG_COUNT")
    return builder.build()
