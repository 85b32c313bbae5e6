"""A consumer of OpenLineage events on the loopback interface, and their validation with the published schemas."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = (Path(__file__).parent / "openlineage_spec", ROOT / "docs" / "reference" / "openlineage")


class Consumer:
    """A server that keeps the events that it receives. ``status`` is what it answers."""

    def __init__(self, status: int = 201) -> None:
        self.events: list[dict[str, Any]] = []
        events = self.events

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                events.append(json.loads(body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def take(self) -> list[dict[str, Any]]:
        """Return the events since the last call. Each is valid."""
        found = list(self.events)
        self.events.clear()
        for event in found:
            validate(event)
        return found


def validate(event: dict[str, Any]) -> None:
    """Check an event with the schema of OpenLineage, and each facet with the schema that it names."""
    _check(event, event["schemaURL"])
    for facet in _facets(event):
        _check(facet, facet["_schemaURL"])


def _facets(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        if "_schemaURL" in found:
            yield found
        for value in found.values():
            yield from _facets(value)
    elif isinstance(found, list):
        for value in found:
            yield from _facets(value)


def _check(value: Any, url: str) -> None:
    Draft202012Validator({"$ref": url}, registry=_registry(), format_checker=FormatChecker()).validate(value)


@cache
def _registry() -> Registry[Any]:
    documents = [json.loads(path.read_text(encoding="utf-8")) for folder in SCHEMAS for path in folder.glob("*.json")]
    return Registry().with_resources((document["$id"], Resource.from_contents(document)) for document in documents)
