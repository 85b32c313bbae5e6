"""moto's S3 server on loopback, in a separate process group. It keeps all objects in memory."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyarrow import fs

from tests.daemons import Daemon

BUCKET = "events"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_REQUEST = re.compile(r'"(GET|PUT|HEAD|POST|DELETE) (\S+) HTTP')

SERVE = "import sys; from moto.server import main; main(sys.argv[1:])"
OVERWRITES = f"""
import moto.server as server

def overwriting(run):
    def serve(host, port, app, **more):
        def without(environ, answer):
            environ.pop("HTTP_IF_NONE_MATCH", None)
            return app(environ, answer)
        run(host, port, without, **more)
    return serve

server.run_simple = overwriting(server.run_simple)
{SERVE}
"""
"""Code of the same server without put-if-absent: it overwrites existing objects."""


@contextmanager
def s3_server(folder: Path, code: str = SERVE) -> Iterator[dict[str, str]]:
    """Run a server with one bucket and yield the settings for it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "server.log"
    with log.open("wb") as log_file:
        arguments = [sys.executable, "-W", "ignore", "-c", code, "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=log_file, stderr=subprocess.STDOUT, start_new_session=True
        )
    server = Daemon(process, log)
    try:
        server.wait_for("Running on")
        settings = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "canary-4f1e-id",
            "AWS_SECRET_ACCESS_KEY": "canary-4f1e-secret",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
        client(settings, makes_buckets=True).create_dir(BUCKET)
        yield settings
    finally:
        server.kill()


def requests(folder: Path) -> list[tuple[str, str]]:
    """Return method and path of each request that the server of a folder has answered, as its log says."""
    return _REQUEST.findall(_COLOUR.sub("", (folder / "server.log").read_text(errors="replace")))


def client(settings: dict[str, str], *, makes_buckets: bool = False) -> fs.S3FileSystem:
    """Return an S3 client that is independent of rewindow."""
    return fs.S3FileSystem(
        access_key=settings["AWS_ACCESS_KEY_ID"],
        secret_key=settings["AWS_SECRET_ACCESS_KEY"],
        region=settings["AWS_REGION"],
        endpoint_override=settings["AWS_ENDPOINT_URL"],
        allow_bucket_creation=makes_buckets,
    )


def objects(settings: dict[str, str], below: str) -> Iterator[tuple[str, bytes]]:
    """Yield the objects below a path of the bucket, with their bytes."""
    system = client(settings)
    for info in system.get_file_info(fs.FileSelector(f"{BUCKET}/{below}", recursive=True, allow_not_found=True)):
        if info.type == fs.FileType.File:
            with system.open_input_stream(info.path, compression=None) as stream:
                yield info.path, stream.read()
