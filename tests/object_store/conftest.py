"""One server for all tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.object_store.server import s3_server


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Run the server and yield the settings for its bucket."""
    with s3_server(tmp_path_factory.mktemp("s3")) as found:
        yield found
