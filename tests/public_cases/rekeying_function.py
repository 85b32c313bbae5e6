"""Customers by the area codes of their telephone numbers."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/rekeying-function/ksql/code"
INPUT = {
    "customers": """
{"id": 1, "firstname": "Sleve", "lastname": "McDichael", "phonenumber": "(360) 555-8909"}
{"id": 2, "firstname": "Onson", "lastname": "Sweemey", "phonenumber": "206-555-1272"}
{"id": 3, "firstname": "Darryl", "lastname": "Archideld", "phonenumber": "425.555.6940"}
{"id": 4, "firstname": "Anatoli", "lastname": "Smorin", "phonenumber": "509.555.8033"}
{"id": 5, "firstname": "Rey", "lastname": "McSriff", "phonenumber": "360 555 6952"}
{"id": 6, "firstname": "Glenallen", "lastname": "Mixon", "phonenumber": "(253) 555-7050"}
{"id": 7, "firstname": "Mario", "lastname": "McRlwain", "phonenumber": "360 555 7598"}
{"id": 8, "firstname": "Kevin", "lastname": "Nogilny", "phonenumber": "206.555.8090"}
{"id": 9, "firstname": "Tony", "lastname": "Smehrik", "phonenumber": "425-555-7926"}
{"id": 10, "firstname": "Bobson", "lastname": "Dugnutt", "phonenumber": "509.555.8795"}
""",
}
LOGS = {
    "customers": {"key": "id", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "customers_by_area_code": """
{"AREA_CODE": "360", "FIRSTNAME": "Sleve", "LASTNAME": "McDichael", "PHONENUMBER": "(360) 555-8909"}
{"AREA_CODE": "206", "FIRSTNAME": "Onson", "LASTNAME": "Sweemey", "PHONENUMBER": "206-555-1272"}
{"AREA_CODE": "360", "FIRSTNAME": "Rey", "LASTNAME": "McSriff", "PHONENUMBER": "360 555 6952"}
{"AREA_CODE": "425", "FIRSTNAME": "Darryl", "LASTNAME": "Archideld", "PHONENUMBER": "425.555.6940"}
{"AREA_CODE": "360", "FIRSTNAME": "Mario", "LASTNAME": "McRlwain", "PHONENUMBER": "360 555 7598"}
{"AREA_CODE": "206", "FIRSTNAME": "Kevin", "LASTNAME": "Nogilny", "PHONENUMBER": "206.555.8090"}
{"AREA_CODE": "509", "FIRSTNAME": "Anatoli", "LASTNAME": "Smorin", "PHONENUMBER": "509.555.8033"}
{"AREA_CODE": "425", "FIRSTNAME": "Tony", "LASTNAME": "Smehrik", "PHONENUMBER": "425-555-7926"}
{"AREA_CODE": "253", "FIRSTNAME": "Glenallen", "LASTNAME": "Mixon", "PHONENUMBER": "(253) 555-7050"}
{"AREA_CODE": "509", "FIRSTNAME": "Bobson", "LASTNAME": "Dugnutt", "PHONENUMBER": "509.555.8795"}
""",
}
LAST_OF = "PHONENUMBER"


class AreaCode(NamedTuple):
    AREA_CODE: str


class Customer(NamedTuple):
    FIRSTNAME: str
    LASTNAME: str
    PHONENUMBER: str


def by_area_code(_id: int, row: Any) -> tuple[AreaCode, Customer]:
    area_code = re.sub("[^0-9]", "", row.phonenumber)[:3]
    return AreaCode(area_code), Customer(row.firstname, row.lastname, row.phonenumber)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    rekeyed = builder.stream("customers").map(by_area_code, key=AreaCode, value=Customer)
    rekeyed.repartition(name="by-area-code").to("customers_by_area_code")
    return builder.build()
