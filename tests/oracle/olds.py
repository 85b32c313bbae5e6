"""Which tables send old values: those from which a node below needs them. Kafka decides this node by node.

Results differ in one place: a filter without old values cannot know that there is nothing to withdraw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.oracle.repartitions import DERIVE, MAKES_TABLE


def tables_that_send_old_values(scenario: Mapping[str, Any]) -> set[str]:
    """Return the names of the nodes that send them."""
    specs = {one["name"]: one for one in [*scenario["sources"], *scenario["nodes"]]}
    tables = {one["name"] for one in scenario["sources"] if one["kind"] == "table"}
    sending: set[str] = set()

    def ask(name: str, *, only_if_stored: bool) -> bool:
        spec = specs[name]
        op = spec.get("op")
        if op in DERIVE and not spec.get("materialize"):
            answer = ask(spec["in"], only_if_stored=only_if_stored)
        else:
            above = spec["in"] if op == "table_table_join" else [spec["in"]] if op == "suppress" else []
            answers = [ask(one, only_if_stored=False) for one in above]
            answer = all(answers)
        if answer:
            sending.add(name)
        return answer

    for node in scenario["nodes"]:
        name, op = node["name"], node["op"]
        above = node["in"] if isinstance(node["in"], list) else [node["in"]]
        is_table = above[0] in tables
        if op == "filter" and is_table:
            if ask(above[0], only_if_stored=True):
                sending.add(name)
        elif op == "suppress" or (op == "group_by" and is_table) or op == "foreign_key_join":
            ask(above[0], only_if_stored=False)
        elif op == "table_table_join":
            for one in above[: {"inner": 0, "left": 1, "outer": 2}[node["how"]]]:
                ask(one, only_if_stored=False)
        if op in MAKES_TABLE or (is_table and op in DERIVE):
            tables.add(name)
    return sending
