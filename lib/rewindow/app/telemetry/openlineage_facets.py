"""rewindow's own facets. Their JSON Schemas are in docs/reference/openlineage, named as in `_schemaURL`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openlineage.client.facet_v2 import BaseFacet

from rewindow.app.own_code import running_version

VERSION = running_version()
PRODUCER = f"urn:rewindow:{VERSION}"
"""Who made an event. rewindow is published nowhere yet, so it is a name and not an address."""
SCHEMAS = "urn:rewindow:openlineage:1-0-0"
"""The version of the schemas. An event names it, so a changed schema gets a new one."""


class _Facet(BaseFacet):  # type: ignore[misc, unused-ignore]
    """The base of a facet of ours: the client asks its class for the schema."""


def custom(name: str, known: Mapping[str, Any]) -> Any:
    """Return a facet with JSON values. Unknown ones (None) are left out."""
    url = f"{SCHEMAS}:{name}.json#/$defs/{name}"
    facet = type(name, (_Facet,), {"_get_schema": staticmethod(lambda: url), "__slots__": ()})
    return facet(producer=PRODUCER).with_additional_properties(**known)
