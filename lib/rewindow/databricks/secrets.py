"""Read secrets of a workspace into environment variables, for serverless compute, on which no variables can be set.

A secret is named ``SCOPE/KEY`` and never printed. `databricks-sdk` is imported on use; it is part of Databricks' runtimes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rewindow.databricks.submit import errors, workspace
from rewindow.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_ONE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<scope>[\w.@-]+)/(?P<key>[\w.@-]+)")


def named(text: str) -> dict[str, tuple[str, str]]:
    """Parse words ``NAME=SCOPE/KEY`` to a mapping from name to scope and key. Raises `UsageError` (2) for any other word."""
    found = {}
    for word in text.split():
        match = _ONE.fullmatch(word)
        if match is None:
            # The message does not show the invalid word, because it might be a secret.
            raise UsageError(
                "secret-name-malformed",
                "secrets must be NAME=SCOPE/KEY, separated by spaces, such as OPENLINEAGE_API_KEY=rewindow/key",
            )
        found[match["name"]] = (match["scope"], match["key"])
    return found


def read(wanted: Mapping[str, tuple[str, str]], client: WorkspaceClient | None = None) -> dict[str, str]:
    """Return the values of secrets, by the name of the environment variable.

    ``wanted`` maps each name to the scope and key of its secret. Raises `ConfigError` (78) if a secret does not exist,
    `AccessError` (77) if the identity of the run may not read it, and `StorageError` (74) if Databricks does not answer.
    """
    values: dict[str, str] = {}
    for name, secret in wanted.items():
        client, shown = client or workspace(), "/".join(secret)
        with errors(f"Create the secret {shown}, or grant READ on the scope to the identity that the job runs as"):
            value = client.dbutils.secrets.get(*secret)
        if not value:
            raise ConfigError(
                "secret-empty", "the secret {secret} for {variable} is empty", secret=shown, variable=name
            )
        values[name] = str(value)
    return values
