"""Edits of the file of a landed feed: a slip is named, and only ways on that `land` accepts are offered."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from rewindow.app.new_project import Example, create_project
from tests.bad_input.scene import Bench
from tests.refusals import containing

FEED = "conf/feeds/orders.yaml"

SCHEMA = "order_id BIGINT, customer STRING, amount DOUBLE, ordered_at TIMESTAMP, received_at TIMESTAMP"


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory, in_process: None) -> Bench:
    """Return the project that `rewindow init` creates, with a schema, landed."""
    bench = Bench(tmp_path_factory.mktemp("landed"))
    create_project(bench.root, Example.WINDOWS)
    bench.edit(FEED, "path: data/orders}", f'path: data/orders, schema: "{SCHEMA}"}}')
    bench.done("land orders")
    return bench


@pytest.fixture
def edit(landed: Bench) -> Iterator[Callable[[str, str], None]]:
    """Return a function that replaces a text in the feed's file until the test ends."""
    text = (landed.root / FEED).read_text(encoding="utf-8")
    yield lambda old, new: landed.edit(FEED, old, new)
    landed.write(FEED, text)


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("path: data/orders,", "path: data/order,", "the source data/order has no files at"),
        ("amount DOUBLE", "amount DOUBEL", "did you mean DOUBLE?"),
        ("key: customer", "key: custmer", "Did you mean 'customer'?"),
    ],
)
def test_a_slip_is_named_as_it_is_before_the_first_landing(
    landed: Bench, edit: Callable[[str, str], None], old: str, new: str, mistake: str
) -> None:
    edit(old, new)
    landed.refuses("land orders", "feed-definition-unusable", mistakes=containing(mistake))


@pytest.mark.parametrize(
    ("old", "new", "ends"),
    [
        ("partitions: 4", "partitions: 8", ""),
        ("key: customer", "key: [customer, received_at]", ""),
        ("[order_id, amount]", "[amount]", ""),
        ("amount DOUBLE", "amount STRING", "unless a landed column has another type now"),
    ],
)
def test_keeping_landings_is_offered_only_where_it_is_possible(
    landed: Bench, edit: Callable[[str, str], None], old: str, new: str, ends: str
) -> None:
    edit(old, new)
    landed.refuses("land orders", "feed-definition-changed", keep=containing(ends) if ends else "")
    assert landed.run(*["land", "orders", "--new-generation", "--keep", "3"]).code == 78
