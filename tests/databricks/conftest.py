"""A Databricks workspace on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.databricks.workspace import Workspace, workspace


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """Start a workspace that `databricks-sdk` finds in the environment, instead of this machine's configuration."""
    with workspace() as made:
        monkeypatch.setenv("DATABRICKS_HOST", made.host)
        monkeypatch.setenv("DATABRICKS_TOKEN", "token")
        monkeypatch.setenv("DATABRICKS_CONFIG_FILE", "/nowhere")
        yield made
