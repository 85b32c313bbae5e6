"""Hooks: the credentials of buckets and Databricks workspaces from Airflow connections, and so from secrets backends.

Nothing writes them down: a command gets them as environment variables, the Databricks SDK as arguments.
"""

from __future__ import annotations

import asyncio
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from rewindow.airflow.connections import Fields, Settings, bucket_settings, workspace_settings
from rewindow.databricks import submit
from rewindow.errors import ConfigError


class BucketHook(BaseHook):
    """The settings with which rewindow opens the buckets of a connection: ``aws``, ``google_cloud_platform``, ``wasb``, ``adls``.

    Without a connection there are none, and the environment of the worker decides.
    """

    def __init__(self, conn_id: str | None = None) -> None:
        super().__init__()
        self.conn_id = conn_id

    def get_conn(self) -> Settings:
        """Return the settings. Raises `ConfigError` (78) for an unknown connection or one that does not fit."""
        return bucket_settings(_fields(self.conn_id)) if self.conn_id else {}

    async def aget_conn(self) -> Settings:
        """Return the same in the triggerer."""
        return bucket_settings(await _afields(self.conn_id)) if self.conn_id else {}


class WorkspaceHook(BaseHook):
    """The Databricks workspace of a connection of the type ``databricks``, or of the SDK's own configuration without one."""

    def __init__(self, conn_id: str | None = None, profile: str | None = None) -> None:
        super().__init__()
        self.conn_id = conn_id
        self.profile = profile

    def get_conn(self) -> Any:
        """Return the SDK's `WorkspaceClient`. Raises `ConfigError` (78) as `BucketHook`, and if no workspace is configured."""
        return submit.workspace(self.profile, workspace_settings(_fields(self.conn_id)) if self.conn_id else {})

    async def aget_conn(self) -> Any:
        """Return the same in the triggerer, whose loop the SDK must not block."""
        settings = workspace_settings(await _afields(self.conn_id)) if self.conn_id else {}
        return await asyncio.to_thread(submit.workspace, self.profile, settings)


def settings_or_fail(conn_id: str | None) -> Settings:
    """Return the settings of a bucket. Raises `AirflowFailException` where `BucketHook` raises `ConfigError`."""
    try:
        return BucketHook(conn_id).get_conn()
    except ConfigError as error:
        raise AirflowFailException(str(error)) from error


def _fields(conn_id: str) -> Fields:
    try:
        found = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise _unknown(conn_id) from error
    return _of(found, found.extra_dejson)


async def _afields(conn_id: str) -> Fields:
    try:
        found = await BaseHook.aget_connection(conn_id)
    except AirflowNotFoundException as error:
        raise _unknown(conn_id) from error
    return _of(found, await found.aextra_dejson())


def _unknown(conn_id: str) -> ConfigError:
    return ConfigError(f"there is no connection {conn_id}: add it in Airflow, its environment or its secrets backend")


def _of(found: Any, extra: dict[str, Any]) -> Fields:
    return Fields(found.conn_id, found.conn_type, found.host or "", found.login or "", found.password or "", extra)
