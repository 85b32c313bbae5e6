"""Turn the text of a failed worker, or of Spark itself, into a `RewindowError` of one line that names the fix.

A worker's own `RewindowError` crosses the JVM as text only: `mark` writes it there and `find_marked` finds it again.
"""

from __future__ import annotations

import json
import re
from typing import Final

from rewindow.errors import AccessError, ConfigError, DataError, LimitError, RewindowError, SourceError, StorageError

_MARK: Final = "rewindow-error:"
_MARKED = re.compile(rf'{_MARK} (\d+) ("(?:[^"\\]|\\.)*")')
_KINDS: Final = {kind.exit_code: kind for kind in RewindowError.__subclasses__()}

_NOISE = re.compile(
    r"An error occurred while calling \S+\.\s*:?\s*"
    r"|Job aborted due to stage failure: Task .*? in stage .*? \(TID \d+\) \(.*?\): "
    r"|SQLSTATE: \w{5};?"
    r"|(?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error): "
)
_JAVA_LINE = re.compile(r"^\s*(?:at \S+\(|\.\.\. \d+ more|JVM stacktrace|Driver stacktrace)")
_BARE_CLASS = re.compile(r"(?:[a-z]\w*\.)+[A-Z][\w$]*")
_CAUSE = "Caused by: "
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)$')
_SQLSTATE = re.compile(r"SQLSTATE: (\w{5})")
_LONGEST = 400

# Words in what Spark or Hadoop says -> what it means to a user and what helps. The first that fits wins.
_MEANINGS: Final[tuple[tuple[tuple[str, ...], type[RewindowError], str], ...]] = (
    (
        ("OutOfMemoryError", "MemoryError"),
        LimitError,
        "give the target more memory (spark: {spark.driver.memory: 4g}) or fewer cores",
    ),
    (("No space left on device",), LimitError, "free space on the disk that is full, then run again"),
    (
        ("worker exited unexpectedly", "Fatal Python error"),
        LimitError,
        (
            "a Python worker was killed, or the job's code ended it (os._exit, a crash in native code). Nothing was "
            "committed: run again, with more memory or fewer cores if it happens twice"
        ),
    ),
    (("Permission denied", "AccessControlException", "AccessDenied", "Mkdirs failed"), AccessError, "grant the access"),
    (
        ("PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "FILE_NOT_EXIST", "FileNotFoundException", "NoSuchFileException"),
        SourceError,
        "put it back, or check the path or table in conf/feeds",
    ),
    (("MALFORMED_", "KD000"), DataError, "fix the file, or set the source's options (mode: PERMISSIVE)"),
    (("ModuleNotFoundError: ", "ImportError: "), ConfigError, "install it where Spark's workers run"),
    (("FileNotFoundError: ", "OSError: "), StorageError, "a file could not be read or written: run again"),
    (
        (
            "PARQUET_COLUMN_DATA_TYPE_MISMATCH",
            "CSV header does not conform to the schema",
            "Number of column in CSV header",
        ),
        SourceError,
        "a new file has other columns than were landed: fix it, or land again: `rewindow land FEED --new-generation`",
    ),
    (("FAILED_READ_FILE",), StorageError, "the file is damaged or of another format: check source.format"),
)
# Classes of SQLSTATE, for what no word above names.
_STATES: Final[dict[str, tuple[type[RewindowError], str]]] = {
    "22": (DataError, "a value does not fit its type: fix the data or the schema"),
    "42": (ConfigError, "check columns, types and formats in the configuration"),
    "0A": (ConfigError, "check columns, types and formats in the configuration"),
    "KD": (StorageError, "reading failed: run again, then look at the file"),
}


def mark(error: RewindowError) -> str:
    """Return a worker's error as one line of text that `find_marked` turns back into it."""
    return f"{_MARK} {error.exit_code} {json.dumps(str(error))}"


def translate_text(text: str) -> RewindowError:
    """Return the `RewindowError` that the text of an exception stands for: a traceback, or what the JVM printed."""
    marked = find_marked(text)
    if marked is not None:
        return marked
    said = _python_words(text) if _TRACEBACK in text else _java_words(text)
    for words, kind, fix in _MEANINGS:
        if any(word in text for word in words):
            return kind(f"{said}: {fix}")
    if _TRACEBACK in text:
        return DataError(f"{said}: the job's own code, or a record that it does not expect; --debug shows all")
    state = _SQLSTATE.search(text)
    kind, fix = _STATES.get(
        state.group(1)[:2] if state else "", (StorageError, "run again; --debug shows Java's account")
    )
    return kind(f"{said}: {fix}")


def find_marked(text: str) -> RewindowError | None:
    """Return the error that a worker marked, wherever in the text it is."""
    found = _MARKED.findall(text)
    if not found:
        return None
    code, message = found[-1]  # a traceback shows source lines before the error itself
    return _KINDS.get(int(code), RewindowError)(json.loads(message))


def _java_words(text: str) -> str:
    """Return the first thing that was said, and the innermost cause if it says something else."""
    blocks = text.split(f"\n{_CAUSE}")
    sentences = [sentence for block in blocks if (sentence := _sentence(block))]
    if not sentences:
        return "Spark failed without a word"
    first, last = sentences[0], sentences[-1]
    return _clipped(first if last in first or len(blocks) == 1 else f"{first} ({last})")


def _sentence(block: str) -> str:
    said = []
    for line in _NOISE.sub("", block.strip()).splitlines():
        if _JAVA_LINE.match(line) or line.startswith(("==", "'", "+-", "Current thread")):
            break
        if line.strip():
            said.append(line.strip())
    sentence = " ".join(said).strip(" :.;")
    return "" if _BARE_CLASS.fullmatch(sentence) else sentence


def _python_words(text: str) -> str:
    """Return the exception that ended the worker, and where in the user's code it came from."""
    lines = text[text.rindex(_TRACEBACK) :].splitlines()[1:]
    said = next((line for line in lines if line.strip() and not line[0].isspace()), "an error without a word")
    frames = [frame for line in lines if (frame := _FRAME.match(line))]
    where = f" ({frames[-1]['file']}:{frames[-1]['line']}, {frames[-1]['name']})" if frames else ""
    return _clipped(said) + where


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} ..."
