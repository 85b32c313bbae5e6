"""Users who spent more than twenty on coffee and nothing on tea. A price rises in between."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/loyalty-rewards"
INPUT = [
    {
        "products": """
{"product_id": "tea", "category": "beverages", "price": 2.55, "at": 1577836800000}
{"product_id": "coffee", "category": "beverages", "price": 2.99, "at": 1577836801000}
{"product_id": "dog", "category": "pets", "price": 249.99, "at": 1577836802000}
{"product_id": "cat", "category": "pets", "price": 195.0, "at": 1577836803000}
{"product_id": "beret", "category": "fashion", "price": 34.99, "at": 1577836804000}
{"product_id": "handbag", "category": "fashion", "price": 126.0, "at": 1577836805000}
""",
        "purchases": """
{"user_id": "kris", "product_id": "coffee", "at": 1577836806000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836807000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836808000}
{"user_id": "yeva", "product_id": "beret", "at": 1577836809000}
{"user_id": "yeva", "product_id": "coffee", "at": 1577836810000}
{"user_id": "yeva", "product_id": "cat", "at": 1577836811000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836812000}
{"user_id": "rick", "product_id": "tea", "at": 1577836813000}
{"user_id": "yeva", "product_id": "coffee", "at": 1577836814000}
{"user_id": "yeva", "product_id": "coffee", "at": 1577836815000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836816000}
{"user_id": "dave", "product_id": "dog", "at": 1577836817000}
{"user_id": "dave", "product_id": "coffee", "at": 1577836818000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836819000}
{"user_id": "kris", "product_id": "beret", "at": 1577836820000}
""",
    },
    {
        "products": """
{"product_id": "coffee", "category": "beverages", "price": 3.05, "at": 1577836821000}
""",
        "purchases": """
{"user_id": "kris", "product_id": "coffee", "at": 1577836822000}
{"user_id": "rick", "product_id": "coffee", "at": 1577836823000}
{"user_id": "yeva", "product_id": "coffee", "at": 1577836824000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836825000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836826000}
{"user_id": "rick", "product_id": "dog", "at": 1577836827000}
{"user_id": "rick", "product_id": "coffee", "at": 1577836828000}
{"user_id": "yeva", "product_id": "coffee", "at": 1577836829000}
{"user_id": "rick", "product_id": "cat", "at": 1577836830000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836831000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836832000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836833000}
{"user_id": "kris", "product_id": "coffee", "at": 1577836834000}
{"user_id": "yeva", "product_id": "handbag", "at": 1577836835000}
""",
    },
]
LOGS = {
    "products": {"key": "product_id", "timestamp": "at"},
    "purchases": {"key": "user_id", "timestamp": "at"},
}
EXPECTED = {
    "promotion_loose_leaf": """
{"USER_ID": "kris", "PRODUCTS": "[coffee]", "PROMOTION_NAME": "loose_leaf"}
""",
}
LAST_OF = "USER_ID"


class User(NamedTuple):
    USER_ID: str


class Purchase(NamedTuple):
    user_id: str
    product_id: str


class Bought(NamedTuple):
    user_id: str
    product_id: str
    price: float


class Basket(NamedTuple):
    products: list[str]
    total: float


class Promotion(NamedTuple):
    PRODUCTS: str
    PROMOTION_NAME: str


def purchase(user_id: str, row: Any) -> Purchase:
    return Purchase(user_id, row.product_id)


def bought(purchase: Purchase, product: Any) -> Bought:
    return Bought(*purchase, product.price)


def added(_key: User, bought: Bought, basket: Basket) -> Basket:
    return Basket(sorted({*basket.products, bought.product_id}), basket.total + bought.price)


def promotion(basket: Basket) -> Promotion:
    return Promotion(f"[{', '.join(basket.products)}]", "loose_leaf")


def build_topology() -> Topology:
    builder = StreamsBuilder()
    products = builder.table("products", store="product-rows")
    purchases = builder.stream("purchases").map_values(purchase, with_key=True)
    by_product = purchases.select_key(lambda _, purchase: purchase.product_id, key=str)
    drinks = by_product.join(products, bought, name="prices").filter(lambda product, _: product in ("coffee", "tea"))
    users = drinks.select_key(lambda _, bought: User(bought.user_id), key=User).group_by_key()
    baskets = users.aggregate(lambda: Basket([], 0.0), added, store="baskets", value=Basket)
    promoted = baskets.filter(lambda _, basket: "tea" not in basket.products and basket.total > 20)
    promoted.map_values(promotion).to_stream().to("promotion_loose_leaf")
    return builder.build()
