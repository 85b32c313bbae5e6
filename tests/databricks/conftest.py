"""A workspace on loopback, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.databricks.workspace import Workspace, workspace


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """Start it and let `databricks-sdk` find it in the environment, and nothing of this machine's own."""
    with workspace() as made:
        monkeypatch.setenv("DATABRICKS_HOST", made.host)
        monkeypatch.setenv("DATABRICKS_TOKEN", "token")
        monkeypatch.setenv("DATABRICKS_CONFIG_FILE", "/nowhere")
        yield made
