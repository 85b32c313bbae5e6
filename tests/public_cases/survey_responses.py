"""How often each answer was given to each question by a known respondent."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/survey-responses"
INPUT = {
    "SURVEY_RESPONDENTS": """
{"RESPONDENT_ID": "159", "NAME": "Penelope Coin", "TEAM": "DevX", "EMAIL": "pennycoin@email.com", "ADDRESS": "183 Maple Drive"}
{"RESPONDENT_ID": "93", "NAME": "Theodore Bear", "TEAM": "Marketing", "EMAIL": "teddyb@email.com", "ADDRESS": "68 El Camino Real"}
{"RESPONDENT_ID": "184", "NAME": "Jack Pepper", "TEAM": "DevX", "EMAIL": "pepper.jack@email.com", "ADDRESS": "8299 Skyline Drive"}
{"RESPONDENT_ID": "15", "NAME": "John Deer", "TEAM": "Engineering", "EMAIL": "jdeer15@email.com", "ADDRESS": "928 Maple Street"}
{"RESPONDENT_ID": "282", "NAME": "Jane Doe", "TEAM": "Engineering", "EMAIL": "jane.doe@email.com", "ADDRESS": "110 Rocky Road"}
{"RESPONDENT_ID": "739", "NAME": "Monte Wisoky", "TEAM": "Engineering", "EMAIL": "wisoky.m@email.com", "ADDRESS": "1 First Street"}
{"RESPONDENT_ID": "250", "NAME": "Tessie Cremin", "TEAM": "DevX", "EMAIL": "tcremin@email.com", "ADDRESS": "8 B Street Apt A"}
{"RESPONDENT_ID": "301", "NAME": "Wilfrid Howe", "TEAM": "Marketing", "EMAIL": "whowe301@email.com", "ADDRESS": "617 Hamilton Road"}
""",
    "SURVEY_RESPONSES": """
{"SURVEY_ID": "0", "RESPONDENT_ID": "184", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Pie?", "SURVEY_RESPONSE": "Apple Pie"}
{"SURVEY_ID": "0", "RESPONDENT_ID": "159", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Pie?", "SURVEY_RESPONSE": "Pumpkin Pie"}
{"SURVEY_ID": "0", "RESPONDENT_ID": "93", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Pie?", "SURVEY_RESPONSE": "Pecan Pie"}
{"SURVEY_ID": "0", "RESPONDENT_ID": "301", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Pie?", "SURVEY_RESPONSE": "Apple Pie"}
{"SURVEY_ID": "0", "RESPONDENT_ID": "15", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Pie?", "SURVEY_RESPONSE": "Pumpkin Pie"}
{"SURVEY_ID": "0", "RESPONDENT_ID": "282", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Pie?", "SURVEY_RESPONSE": "Pumpkin Pie"}
{"SURVEY_ID": "0", "RESPONDENT_ID": "250", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Pie?", "SURVEY_RESPONSE": "Apple Pie"}
{"SURVEY_ID": "0", "RESPONDENT_ID": "739", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Pie?", "SURVEY_RESPONSE": "Apple Pie"}
{"SURVEY_ID": "1", "RESPONDENT_ID": "15", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Dish?", "SURVEY_RESPONSE": "Turkey"}
{"SURVEY_ID": "1", "RESPONDENT_ID": "282", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Dish?", "SURVEY_RESPONSE": "Stuffing"}
{"SURVEY_ID": "1", "RESPONDENT_ID": "250", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Dish?", "SURVEY_RESPONSE": "Turkey"}
{"SURVEY_ID": "1", "RESPONDENT_ID": "739", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Dish?", "SURVEY_RESPONSE": "Stuffing"}
{"SURVEY_ID": "1", "RESPONDENT_ID": "159", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Dish?", "SURVEY_RESPONSE": "Cranberry Jelly"}
{"SURVEY_ID": "1", "RESPONDENT_ID": "184", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Dish?", "SURVEY_RESPONSE": "Turkey"}
{"SURVEY_ID": "1", "RESPONDENT_ID": "93", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Dish?", "SURVEY_RESPONSE": "Stuffing"}
{"SURVEY_ID": "1", "RESPONDENT_ID": "301", "SURVEY_QUESTION": "What is your Favorite Thanksgiving Dish?", "SURVEY_RESPONSE": "Green Beans"}
""",
}
LOGS = {
    "SURVEY_RESPONDENTS": {"key": "RESPONDENT_ID", "timestamp": "tests.public_cases.times:first"},
    "SURVEY_RESPONSES": {"key": "RESPONDENT_ID", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "SURVEY_RESULTS_LIVE": """
{"SURVEY_QUESTION": "What is your Favorite Thanksgiving Dish?", "RESULTS": "{\\"Cranberry Jelly\\": 1, \\"Green Beans\\": 1, \\"Stuffing\\": 3, \\"Turkey\\": 3}"}
{"SURVEY_QUESTION": "What is your Favorite Thanksgiving Pie?", "RESULTS": "{\\"Apple Pie\\": 4, \\"Pecan Pie\\": 1, \\"Pumpkin Pie\\": 3}"}
""",
}
LAST_OF = "SURVEY_QUESTION"


class Question(NamedTuple):
    SURVEY_QUESTION: str


class Response(NamedTuple):
    question: str
    answer: str


class Results(NamedTuple):
    RESULTS: str


def response(row: Any, _respondent: Any) -> Response:
    return Response(row.SURVEY_QUESTION, row.SURVEY_RESPONSE)


def added(_key: Question, response: Response, counts: dict[str, int]) -> dict[str, int]:
    return {**counts, response.answer: counts.get(response.answer, 0) + 1}


def results(counts: dict[str, int]) -> Results:
    return Results(json.dumps(counts, sort_keys=True))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    respondents = builder.table("SURVEY_RESPONDENTS", store="respondents")
    responses = builder.stream("SURVEY_RESPONSES").join(respondents, response)
    questions = responses.select_key(lambda _, response: Question(response.question), key=Question).group_by_key()
    counts = questions.aggregate(dict, added, store="answers", value=dict[str, int])
    counts.map_values(results).to_stream().to("SURVEY_RESULTS_LIVE")
    return builder.build()
