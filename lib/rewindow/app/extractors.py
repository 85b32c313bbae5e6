"""The versions of the functions that extract a feed's event times, to notice that one has changed."""

from __future__ import annotations

import sys
from pathlib import Path

from rewindow.app.command_log import mute_others
from rewindow.config.feed import FeedConfig


def extractor_versions(config: FeedConfig, root: Path) -> dict[str, str]:
    """Return the version of the code that each function of ``timestamp`` reaches, by its name ``module:function``.

    Raises `ConfigError` (78) for one that cannot be imported.
    """
    names = sorted({log.timestamp for log in config.logs.values() if ":" in log.timestamp})
    if not names:
        return {}
    from rewindow.control.code_version import function_version  # noqa: PLC0415 - few feeds have code
    from rewindow.engine.worker.log_writer import load_extractor  # noqa: PLC0415

    mute_others()
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return {name: function_version(load_extractor(name), root) for name in names}
