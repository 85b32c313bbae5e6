"""The offer for each activity of a customer, by income, credit score and propensity."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/next-best-offer"
INPUT = {
    "customers": """
{"customer_id": 1, "first_name": "Waylen", "last_name": "Tubble", "email": "wtubble0@hc360.com", "gender": "Male", "income": 403646, "fico": 465}
{"customer_id": 2, "first_name": "Joell", "last_name": "Wilshin", "email": "jwilshin1@yellowpages.com", "gender": "Female", "income": 109825, "fico": 705}
{"customer_id": 3, "first_name": "Ilaire", "last_name": "Latus", "email": "ilatus2@baidu.com", "gender": "Male", "income": 407964, "fico": 750}
""",
    "offers": """
{"offer_id": 1, "offer_name": "new_savings", "offer_url": "http://google.com.br/magnis/dis/parturient.json"}
{"offer_id": 2, "offer_name": "new_checking", "offer_url": "https://earthlink.net/in/ante.js"}
{"offer_id": 3, "offer_name": "new_home_loan", "offer_url": "https://webs.com/in/ante.jpg"}
{"offer_id": 4, "offer_name": "new_auto_loan", "offer_url": "http://squidoo.com/venenatis/non/sodales/sed/tincidunt/eu.js"}
{"offer_id": 5, "offer_name": "no_offer", "offer_url": "https://ezinearticles.com/ipsum/primis/in/faucibus/orci/luctus.html"}
""",
    "customer_activity_stream": """
{"customer_id": 1, "activity_id": 1, "ip_address": "121.219.110.170", "activity_type": "branch_visit", "propensity_to_buy": 0.4}
{"customer_id": 2, "activity_id": 2, "ip_address": "210.232.55.188", "activity_type": "deposit", "propensity_to_buy": 0.56}
{"customer_id": 3, "activity_id": 3, "ip_address": "84.197.123.173", "activity_type": "web_open", "propensity_to_buy": 0.33}
{"customer_id": 1, "activity_id": 4, "ip_address": "70.149.233.32", "activity_type": "deposit", "propensity_to_buy": 0.41}
{"customer_id": 2, "activity_id": 5, "ip_address": "221.234.209.67", "activity_type": "deposit", "propensity_to_buy": 0.44}
{"customer_id": 3, "activity_id": 6, "ip_address": "102.187.28.148", "activity_type": "web_open", "propensity_to_buy": 0.33}
{"customer_id": 1, "activity_id": 7, "ip_address": "135.37.250.250", "activity_type": "mobile_open", "propensity_to_buy": 0.97}
{"customer_id": 2, "activity_id": 8, "ip_address": "122.157.243.25", "activity_type": "deposit", "propensity_to_buy": 0.83}
{"customer_id": 3, "activity_id": 9, "ip_address": "114.215.212.181", "activity_type": "deposit", "propensity_to_buy": 0.86}
{"customer_id": 1, "activity_id": 10, "ip_address": "248.248.0.78", "activity_type": "new_account", "propensity_to_buy": 0.14}
""",
}
LOGS = {
    "customers": {"key": "customer_id", "timestamp": "tests.public_cases.times:first"},
    "offers": {"key": "offer_id", "timestamp": "tests.public_cases.times:first"},
    "customer_activity_stream": {"key": "customer_id", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "next_best_offer_lookup": """
{"NBO_OFFER_ID": 1, "CUSTOMER_ID": 1, "ACTIVITY_ID": 1, "PROPENSITY_TO_BUY": 0.4, "ACTIVITY_TYPE": "branch_visit", "INCOME": 403646, "FICO": 465, "OFFER_NAME": "new_savings", "OFFER_URL": "http://google.com.br/magnis/dis/parturient.json"}
{"NBO_OFFER_ID": 3, "CUSTOMER_ID": 3, "ACTIVITY_ID": 3, "PROPENSITY_TO_BUY": 0.33, "ACTIVITY_TYPE": "web_open", "INCOME": 407964, "FICO": 750, "OFFER_NAME": "new_home_loan", "OFFER_URL": "https://webs.com/in/ante.jpg"}
{"NBO_OFFER_ID": 5, "CUSTOMER_ID": 1, "ACTIVITY_ID": 7, "PROPENSITY_TO_BUY": 0.97, "ACTIVITY_TYPE": "mobile_open", "INCOME": 403646, "FICO": 465, "OFFER_NAME": "no_offer", "OFFER_URL": "https://ezinearticles.com/ipsum/primis/in/faucibus/orci/luctus.html"}
{"NBO_OFFER_ID": 1, "CUSTOMER_ID": 1, "ACTIVITY_ID": 4, "PROPENSITY_TO_BUY": 0.41, "ACTIVITY_TYPE": "deposit", "INCOME": 403646, "FICO": 465, "OFFER_NAME": "new_savings", "OFFER_URL": "http://google.com.br/magnis/dis/parturient.json"}
{"NBO_OFFER_ID": 1, "CUSTOMER_ID": 1, "ACTIVITY_ID": 10, "PROPENSITY_TO_BUY": 0.14, "ACTIVITY_TYPE": "new_account", "INCOME": 403646, "FICO": 465, "OFFER_NAME": "new_savings", "OFFER_URL": "http://google.com.br/magnis/dis/parturient.json"}
{"NBO_OFFER_ID": 3, "CUSTOMER_ID": 2, "ACTIVITY_ID": 2, "PROPENSITY_TO_BUY": 0.56, "ACTIVITY_TYPE": "deposit", "INCOME": 109825, "FICO": 705, "OFFER_NAME": "new_home_loan", "OFFER_URL": "https://webs.com/in/ante.jpg"}
{"NBO_OFFER_ID": 3, "CUSTOMER_ID": 3, "ACTIVITY_ID": 6, "PROPENSITY_TO_BUY": 0.33, "ACTIVITY_TYPE": "web_open", "INCOME": 407964, "FICO": 750, "OFFER_NAME": "new_home_loan", "OFFER_URL": "https://webs.com/in/ante.jpg"}
{"NBO_OFFER_ID": 3, "CUSTOMER_ID": 2, "ACTIVITY_ID": 5, "PROPENSITY_TO_BUY": 0.44, "ACTIVITY_TYPE": "deposit", "INCOME": 109825, "FICO": 705, "OFFER_NAME": "new_home_loan", "OFFER_URL": "https://webs.com/in/ante.jpg"}
{"NBO_OFFER_ID": 3, "CUSTOMER_ID": 3, "ACTIVITY_ID": 9, "PROPENSITY_TO_BUY": 0.86, "ACTIVITY_TYPE": "deposit", "INCOME": 407964, "FICO": 750, "OFFER_NAME": "new_home_loan", "OFFER_URL": "https://webs.com/in/ante.jpg"}
{"NBO_OFFER_ID": 3, "CUSTOMER_ID": 2, "ACTIVITY_ID": 8, "PROPENSITY_TO_BUY": 0.83, "ACTIVITY_TYPE": "deposit", "INCOME": 109825, "FICO": 705, "OFFER_NAME": "new_home_loan", "OFFER_URL": "https://webs.com/in/ante.jpg"}
""",
}
LAST_OF = "ACTIVITY_ID"


class Activity(NamedTuple):
    CUSTOMER_ID: int
    ACTIVITY_ID: int
    PROPENSITY_TO_BUY: float
    ACTIVITY_TYPE: str
    INCOME: int
    FICO: int


class Offered(NamedTuple):
    CUSTOMER_ID: int
    ACTIVITY_ID: int
    PROPENSITY_TO_BUY: float
    ACTIVITY_TYPE: str
    INCOME: int
    FICO: int
    OFFER_NAME: str
    OFFER_URL: str


class OfferKey(NamedTuple):
    NBO_OFFER_ID: int


def of_customer(customer_id: int, row: Any, customer: Any) -> Activity:
    return Activity(
        customer_id, row.activity_id, row.propensity_to_buy, row.activity_type, customer.income, customer.fico
    )


def offer_of(_key: int, activity: Activity) -> int:
    if activity.PROPENSITY_TO_BUY >= 0.9:
        return 5
    if activity.INCOME > 100_000 and activity.FICO < 700:
        return 1
    if activity.INCOME < 50_000:
        return 2
    return 3 if activity.FICO >= 600 else 5


def offered(activity: Activity, offer: Any) -> Offered:
    return Offered(*activity, offer.offer_name, offer.offer_url)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    customers = builder.table("customers", store="customer-rows")
    offers = builder.table("offers", store="offer-rows")
    activities = builder.stream("customer_activity_stream").join(customers, of_customer, with_key=True)
    rows = activities.select_key(offer_of, key=int).join(offers, offered, name="with-offer")
    rows.select_key(lambda offer_id, _: OfferKey(offer_id), key=OfferKey).to("next_best_offer_lookup")
    return builder.build()
