"""Sessions whose driver is this process. Only this module deals with the JVM, the jars and local settings.

All other modules only use a `SparkSession`, without `_jvm` and RDDs, so they also work with Spark Connect. The JVM's stderr
is relayed without the lines that tell users nothing. PySpark and py4j print no stack traces of errors that the command itself
reports.
"""

from __future__ import annotations

import atexit
import logging
import os
import socketserver
import sys
import threading
from collections import deque
from contextlib import contextmanager, suppress
from importlib import resources
from locale import getencoding
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from rewindow.engine.spark.class_archive import archive_options
from rewindow.engine.spark.jars import cache_dir, check_launcher, find_jars, find_java
from rewindow.errors import ConfigError, visible_lines, without_secrets
from rewindow.storage.scratch import is_own, make_folder, remove_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from py4j.java_gateway import JavaGateway


_MARK: Final = "spark.rewindow.local"
_JOINED: Final = {"spark.driver.extraJavaOptions": " ", "spark.driver.extraClassPath": os.pathsep}
_PYTHON: Final = "spark.pyspark.python"
_LOCAL_DIR: Final = "spark.local.dir"
_END_S: Final = 120
# The JVM prints this before any logger exists, because Spark 4.2 requires an incubator module.
_INCUBATOR: Final = b"WARNING: Using incubator modules"
_TRACEBACK: Final = b"Traceback (most recent call last):"
# When a worker fails, its daemon prints the traceback of a closed pipe. The failure itself reaches the driver as an exception.
_DAEMON: Final = b"/pyspark/daemon.py"
_KEPT_LINES: Final = 20


def local_session(
    *,
    cores: int | None = None,
    conf: Mapping[str, str | float | bool] | None = None,
    python_path: Sequence[str | Path] = (),
    debug: bool = False,
) -> SparkSession:
    """Start Spark in a JVM of this process, or return the session that an earlier call started.

    ``cores`` is the number of threads for tasks (default: all cores of the machine). ``conf`` has settings that override
    ours; Java options and class path are appended to ours. ``python_path`` has further folders from which workers import, for
    example a project's root, which contains `jobs`. ``debug`` shows Java's log. Raises `ConfigError` (78) if Java or a jar is
    missing, if the JVM does not start, or if the process has a session that rewindow did not start.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return _ours(running)
    cores = cores or os.cpu_count() or 1
    settings = _merged(local_conf(cores, debug=debug), conf or {})
    # Every user of the machine can read the folder that Spark itself would create for shuffled rows.
    if _LOCAL_DIR not in settings and "SPARK_LOCAL_DIRS" not in os.environ:
        settings[_LOCAL_DIR] = make_folder()
        atexit.register(_remove_own, settings[_LOCAL_DIR])
    return _start(f"local[{cores}]", settings, python_path, debug=debug)


def cluster_session(
    master: str,
    *,
    cores: int,
    conf: Mapping[str, str | float | bool] | None = None,
    ships: Sequence[str | Path] = (),
    debug: bool = False,
) -> SparkSession:
    """Start a driver in a JVM of this process, with executors on a cluster; return the session.

    ``master`` is Spark's master URL (``spark://host:7077``, ``yarn``, ``k8s://...``). ``cores`` is the number of concurrent
    tasks over all executors. ``ships`` are zip files from which the executors import (`engine.spark.shipping`). ``conf``
    overrides our settings, as in `local_session`. It also has the network settings of the cluster (``spark.driver.host``,
    ...) and the workers' interpreter (``spark.pyspark.python``). Raises `ConfigError` (78) as `local_session` does.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return _ours(running)
    settings = _merged(_cluster_conf(master, cores, ships, debug=debug), conf or {})
    return _start(master, settings, (), debug=debug)


def end_session(session: SparkSession) -> None:
    """Stop a local session, so that another can start. Waits up to 2 minutes for the end of its JVM."""
    folder = session.sparkContext.getConf().get(_LOCAL_DIR, "")
    session.stop()
    gateway = SparkContext._gateway  # noqa: SLF001  # the only reference to the JVM's process
    if gateway is not None:
        gateway.shutdown()
        # The JVM ends when its stdin is closed.
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=_END_S)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    _remove_own(folder)


def _remove_own(folder: str) -> None:
    if is_own(folder):
        remove_folder(folder)


def local_conf(cores: int, *, debug: bool = False) -> dict[str, str]:
    """Return the settings of a local session: deterministic, quiet, quick to start, without ports open to other hosts."""
    jars = find_jars()
    log4j = resources.files("rewindow.engine.spark").joinpath("log4j2.properties")
    java_options = [
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={log4j}",
        f"-Drewindow.log.level={'warn' if debug else 'off'}",
        # Small runs end before Java's second compiler (C2) pays off. Without it, the JVM starts faster and uses half the CPU.
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        *archive_options(),
    ]
    return {
        _MARK: "true",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        # With `spark.jars`, Spark would copy the jars at each start, and a class archive cannot contain classes of copied jars.
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(cache_dir().parent / "spark-warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.default.parallelism": str(cores),
        "spark.sql.shuffle.partitions": str(cores),
        # By default, Delta reads a snapshot with 50 tasks, which takes longer than a small write.
        "spark.databricks.delta.snapshotPartitions": "1",
        # There are no speculative tasks, and local mode does not retry tasks, so user code runs once.
        "spark.speculation": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.worker.faulthandler.enabled": "true",
        # With checksums, a flipped bit in a source is an error. Without them, it could change a result.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    }


def status_tracker(spark: SparkSession) -> Any:
    """Return Spark's status tracker; None on Spark Connect, which has no status tracker."""
    try:
        return spark.sparkContext.statusTracker()
    except (AttributeError, PySparkException):
        return None


class Relay:
    """A pipe whose lines are relayed to stderr. It keeps the last lines, which explain why a JVM did not start."""

    def __init__(self, *, everything: bool = False, to: int = 2) -> None:
        """Start relaying to the file descriptor ``to``. With ``everything``, no line is left out."""
        read_end, self.write_end = os.pipe()
        self._everything, self._to = everything, to
        self._lines: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self._thread = threading.Thread(target=self._run, args=(read_end,), name="jvm-stderr", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the pipe's write end in this process. Processes that inherited the write end keep it open."""
        os.close(self.write_end)

    def last_line(self) -> str:
        """Return the last line, after all writers have ended (waits up to 5 s)."""
        self._thread.join(timeout=5)
        last = next((line for line in reversed(self._lines) if line.strip()), b"no output")
        return last.decode(errors="replace").strip()

    def _run(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb") as lines:
            for block in _blocks(lines):
                if self._everything or not _is_noise(block):
                    self._lines.extend(block)
                    text = visible_lines(without_secrets(b"".join(block).decode(errors="replace")))
                    with suppress(
                        OSError
                    ):  # a stream that is closed or full must not stop the JVM, which waits for this thread
                        os.write(self._to, text.encode())


def silence_queries() -> None:
    """Stop PySpark from printing the stack traces of queries that fail, here or on a remote server."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Return whether a log record is not py4j's. To the root logger, py4j logs Ctrl-C and the loss of the JVM."""
    return Path(record.pathname).parent.name != "py4j"


def silence_end_of_jvm(server: Any) -> None:
    """Stop a server of accumulator updates from printing an error if the JVM dies and its connection therefore ends."""
    if not isinstance(server, socketserver.BaseServer):
        return
    report = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], (EOFError, ConnectionError)):
            report(request, client_address)

    server.handle_error = handle_error  # type: ignore[method-assign]


def _start(master: str, settings: Mapping[str, str], python_path: Sequence[str | Path], *, debug: bool) -> SparkSession:
    spark_conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("rewindow")
    spark_conf.setAll(list(settings.items()))
    # Workers on a cluster have another interpreter. Local workers use the interpreter of this process.
    python = settings.get(_PYTHON, sys.executable)
    with _environment(python_path, python, on_loopback=_is_loopback(master)):
        gateway = _launch(spark_conf, debug=debug)
        context = SparkContext(conf=spark_conf, gateway=gateway)
    if not debug:
        _silence(context)
    if context.pythonExec != python:
        context.stop()
        raise ConfigError(
            "worker-python-differs",
            "Spark's workers would run {found} instead of {python}. Unset PYSPARK_PYTHON",
            found=context.pythonExec,
            python=python,
        )
    return SparkSession.builder.getOrCreate()


def _cluster_conf(master: str, cores: int, ships: Sequence[str | Path] = (), *, debug: bool = False) -> dict[str, str]:
    """Return the settings of a session with remote executors: those of a local session, adapted to several JVMs."""
    settings = local_conf(cores, debug=debug)
    if not _is_loopback(master):
        del settings["spark.driver.host"], settings["spark.driver.bindAddress"]
    return settings | {
        # Executors fetch the Delta jars and the code from the driver.
        "spark.jars": ",".join(str(jar) for jar in find_jars()),
        "spark.submit.pyFiles": ",".join(str(path) for path in ships),
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.cores.max": str(cores),
    }


def _is_loopback(master: str) -> bool:
    """Return whether a master runs on this machine, so that no port needs to be open to other hosts."""
    return master.startswith("local") or urlsplit(master).hostname in {"localhost", "127.0.0.1"}


def _ours(session: SparkSession) -> SparkSession:
    if session.conf.get(_MARK, None) != "true":
        raise ConfigError(
            "spark-session-foreign",
            "a Spark session that rewindow did not start is running in this process. Stop it first",
        )
    return session


def _merged(ours: dict[str, str], theirs: Mapping[str, str | float | bool]) -> dict[str, str]:
    merged = dict(ours)
    for key, value in theirs.items():
        joint = _JOINED.get(key)
        merged[key] = _text(value) if joint is None else f"{ours[key]}{joint}{value}"
    return merged


def _text(value: str | float | bool) -> str:  # noqa: FBT001  # a YAML scalar, in Spark's notation
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def _environment(python_path: Sequence[str | Path], python: str, *, on_loopback: bool) -> Iterator[None]:
    """Set the environment variables that Spark reads when it starts, and restore them afterwards.

    PYTHONHASHSEED is not set here, because PySpark passes the driver's value to the workers, or 0 if the driver has none.
    """
    inherited = os.environ.get("PYTHONPATH")
    paths = [*(str(Path(path).absolute()) for path in python_path), *([inherited] if inherited else [])]
    wanted = {
        "JAVA_HOME": str(find_java().home),
        # Jars and Python code must have the same version.
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        **({"SPARK_LOCAL_IP": "127.0.0.1"} if on_loopback else {}),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
        # Otherwise workers would import from the working directory first, which may contain the `jobs` of another project.
        "PYTHONSAFEPATH": "1",
        # Even in the C locale, Python reads paths as UTF-8. The JVM does not, and fails in a folder whose name is not ASCII.
        **({} if getencoding().upper() == "UTF-8" else {"LC_ALL": "C.UTF-8"}),
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _launch(conf: SparkConf, *, debug: bool) -> JavaGateway:
    """Start the JVM and relay its stderr without noise, so that a failure is visible."""
    check_launcher()
    relay = Relay(everything=debug)
    try:
        # The command's stdout is for results, which programs may parse. So the JVM's stdout goes to stderr as well.
        pipes = {"stdout": relay.write_end, "stderr": relay.write_end}
        gateway: JavaGateway = launch_gateway(conf, pipes)  # type: ignore[no-untyped-call]  # PySpark's
    except PySparkRuntimeError as error:
        relay.close()
        raise ConfigError(
            "jvm-not-started",
            "the JVM did not start ({reason}): check JAVA_HOME and free memory",
            reason=relay.last_line(),
        ) from error
    relay.close()
    return gateway


def _is_noise(block: list[bytes]) -> bool:
    if block[0].startswith(_INCUBATOR):
        return True
    frames = [line for line in block if line.lstrip().startswith(b"File ")]
    return block[0].startswith(_TRACEBACK) and bool(frames) and all(_DAEMON in frame for frame in frames)


def _blocks(lines: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines as blocks: each Python traceback is one block, and each other line is a block."""
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if block[0].startswith(_TRACEBACK) and (len(block) == 1 or line[:1].isspace()):
            continue
        yield block
        block = []
    if block:
        yield block


def _silence(context: SparkContext) -> None:
    """Stop the libraries from printing stack traces to stderr. Each of these errors is also raised as an exception."""
    silence_queries()
    logging.getLogger().addFilter(is_not_of_py4j)
    silence_end_of_jvm(getattr(context, "_accumulatorServer", None))
