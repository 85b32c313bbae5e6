"""Hooks: the credentials of buckets and Databricks workspaces, from Airflow connections and so also from secrets backends.

Credentials are never written to a file. Commands get them as environment variables, the Databricks SDK gets them as arguments.

Connections have the fields that the providers of Amazon, Google, Microsoft Azure and Databricks define. These providers need
not be installed. A connection with a field that rewindow does not support is refused, because otherwise another identity might
be used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from rewindow.databricks import submit
from rewindow.errors import ConfigError

_Settings = dict[str, str | None]
"""Environment variables by name. A value of None means that the variable is removed from the worker's environment, so that
it is not mixed with the others."""
_AWS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")
_AZURE: Final = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
_GOOGLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"


def _aws(conn: Fields) -> _Settings:
    """Read a connection as `AwsConnectionWrapper` does: login and password, else the extra."""
    session = conn["session_kwargs"] or {}
    conn.refuse(
        "role_arn", "profile_name", "s3_config_file", instead="use keys, or let the worker itself have the role"
    )
    if session.get("profile_name"):
        raise ConfigError(
            "connection-profile-not-supported",
            "connection {connection}: rewindow cannot use profile_name of session_kwargs: use keys",
            connection=conn.conn_id,
        )
    pairs = (
        (conn.login, conn.password),
        (conn["aws_access_key_id"], conn["aws_secret_access_key"]),
        (session.get("aws_access_key_id"), session.get("aws_secret_access_key")),
    )
    key, secret = next((pair for pair in pairs if all(pair)), (None, None))
    if key is None and any(any(pair) for pair in pairs):
        raise ConfigError(
            "aws-key-incomplete",
            "connection {connection} has half of a key: give its id and its secret, or neither",
            connection=conn.conn_id,
        )
    token = conn["aws_session_token"] or session.get("aws_session_token")
    found: _Settings = dict(zip(_AWS, (key, secret, token), strict=True)) if key else {}
    if region := conn["region_name"] or session.get("region_name"):
        found["AWS_REGION"] = region
    if endpoint := ((conn["service_config"] or {}).get("s3") or {}).get("endpoint_url") or conn["endpoint_url"]:
        found |= {**dict.fromkeys(_ENDPOINTS), "AWS_ENDPOINT_URL": endpoint}
    return found


def _azure(conn: Fields) -> _Settings:
    """Read a connection as `WasbHook` does: a connection string, else a service principal, else a key."""
    conn.refuse("sas_token", "managed_identity_client_id", instead="use a key or a service principal")
    if text := conn["connection_string"]:
        key = dict(part.partition("=")[::2] for part in str(text).split(";")).get("AccountKey")
        if not key:
            raise ConfigError(
                "azure-account-key-missing",
                "connection {connection}: its connection_string has no AccountKey: add one",
                connection=conn.conn_id,
            )
    elif tenant := conn["tenant_id"]:
        if not (conn.login and conn.password):
            raise ConfigError(
                "azure-client-secret-missing",
                "connection {connection} has a tenant_id, but not the client's id and secret: add them",
                connection=conn.conn_id,
            )
        return dict(zip(_AZURE, (None, tenant, conn.login, conn.password), strict=True))
    else:
        key = conn["shared_access_key"] or conn.password or conn["account_key"]
    return {**dict.fromkeys(_AZURE), "AZURE_STORAGE_ACCOUNT_KEY": key} if key else {}


def _google(conn: Fields) -> _Settings:
    """Read a connection as `GoogleBaseHook` does, but accept only a key file."""
    # These fields are refused, because the clients of a bucket do not know them. Both clients can read a key file.
    names = ("keyfile_dict", "key_secret_name", "impersonation_chain", "credential_config_file")
    conn.refuse(*names, instead="give the path of a key file on the worker as key_path")
    return {_GOOGLE: conn["key_path"]} if conn["key_path"] else {}


_BUCKETS: Final[Mapping[str, Callable[[Fields], _Settings]]] = {
    "aws": _aws,
    "google_cloud_platform": _google,
    "wasb": _azure,
    "adls": _azure,
}
"""Maps each type of connection to the function that reads its settings."""


class BucketHook(BaseHook):
    """The settings for the buckets of a connection of type ``aws``, ``google_cloud_platform``, ``wasb`` or ``adls``.

    Without a connection there are no settings, and the environment of the worker decides.
    """

    def __init__(self, conn_id: str | None = None) -> None:
        super().__init__()
        self.conn_id = conn_id

    def get_conn(self) -> _Settings:
        """Return the settings. Raises `ConfigError` (78) for a connection that is unknown, or that rewindow cannot use."""
        return bucket_settings(_fields(self.conn_id)) if self.conn_id else {}

    async def aget_conn(self) -> _Settings:
        """Return the settings as `get_conn` does, for the triggerer."""
        return bucket_settings(await _afields(self.conn_id)) if self.conn_id else {}


class WorkspaceHook(BaseHook):
    """The Databricks workspace of a connection of type ``databricks``.

    Without a connection, it is the workspace in the SDK's configuration.
    """

    def __init__(self, conn_id: str | None = None, profile: str | None = None) -> None:
        super().__init__()
        self.conn_id = conn_id
        self.profile = profile

    def get_conn(self) -> Any:
        """Return the SDK's `WorkspaceClient`. Raises `ConfigError` (78) as `BucketHook`, and if no workspace is configured."""
        return submit.workspace(self.profile, workspace_settings(_fields(self.conn_id)) if self.conn_id else {})

    async def aget_conn(self) -> Any:
        """Return the client as `get_conn` does, without blocking the loop of the triggerer."""
        settings = workspace_settings(await _afields(self.conn_id)) if self.conn_id else {}
        return await asyncio.to_thread(submit.workspace, self.profile, settings)


def settings_or_fail(conn_id: str | None) -> _Settings:
    """Return the settings of a bucket. Raises `AirflowFailException` instead of the `ConfigError` of `BucketHook`."""
    try:
        return BucketHook(conn_id).get_conn()
    except ConfigError as error:
        raise AirflowFailException(str(error)) from error


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a connection. Its ``repr`` contains no secret."""

    conn_id: str
    conn_type: str
    host: str = ""
    login: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> Any:
        """Return a field of the extra; None if it is missing or empty.

        In older versions of Airflow, the field's name has a prefix.
        """
        return self.extra.get(name) or self.extra.get(f"extra__{self.conn_type}__{name}") or None

    def refuse(self, *names: str, instead: str) -> None:
        """Raise `ConfigError` (78) if one of these fields of the extra is set."""
        for name in names:
            if self[name]:
                raise ConfigError(
                    "connection-field-not-supported",
                    "connection {connection}: rewindow cannot use {field} of its extra: {fix}",
                    connection=self.conn_id,
                    field=name,
                    fix=instead,
                )


def bucket_settings(conn: Fields) -> _Settings:
    """Return the environment variables with which a command opens a bucket.

    If the connection contains no credentials, there are none, and the worker's own identity is used. Raises `ConfigError` (78)
    for a connection of another type, and for fields that rewindow does not support.
    """
    if conn.conn_type not in _BUCKETS:
        types = ", ".join(_BUCKETS)
        raise ConfigError(
            "connection-not-bucket",
            "connection {connection} has the type {type!r}: for a bucket use one of {types}",
            connection=conn.conn_id,
            type=conn.conn_type,
            types=types,
        )
    return _BUCKETS[conn.conn_type](conn)


def workspace_settings(conn: Fields) -> dict[str, str]:
    """Return the arguments of the SDK's client for a Databricks workspace. Raises `ConfigError` (78) as `bucket_settings`."""
    if conn.conn_type != "databricks":
        raise ConfigError(
            "connection-not-databricks",
            "connection {connection} has the type {type!r}: use one of the type databricks",
            connection=conn.conn_id,
            type=conn.conn_type,
        )
    host = conn["host"] or conn.host
    if not host:
        raise ConfigError(
            "databricks-host-missing",
            "connection {connection} has no host: add the address of the workspace",
            connection=conn.conn_id,
        )
    found = {"host": str(host)}
    if token := conn["token"] or (conn.password if conn.login in ("", "token") else None):
        return {**found, "token": token, "auth_type": "pat"}
    conn.refuse(
        "use_azure_managed_identity", "use_default_azure_credential", instead="use a token or a service principal"
    )
    tenant = conn["azure_tenant_id"]
    if not (tenant or conn["service_principal_oauth"]) or not (conn.login and conn.password):
        raise ConfigError(
            "databricks-credentials-missing",
            "connection {connection} has neither a token nor a service principal: put a token into its "
            "password, or add service_principal_oauth to its extra, with the client's id and secret as "
            "login and password",
            connection=conn.conn_id,
        )
    if tenant:
        azure = {"azure_tenant_id": tenant, "azure_client_id": conn.login, "azure_client_secret": conn.password}
        return {**found, **azure, "auth_type": "azure-client-secret"}
    return {**found, "client_id": conn.login, "client_secret": conn.password, "auth_type": "oauth-m2m"}


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
    return ConfigError(
        "airflow-connection-unknown",
        "there is no connection {connection}: add it in Airflow, its environment or its secrets backend",
        connection=conn_id,
    )


def _of(found: Any, extra: dict[str, Any]) -> Fields:
    return Fields(found.conn_id, found.conn_type, found.host or "", found.login or "", found.password or "", extra)
