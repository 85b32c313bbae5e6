"""A headless Chromium driven through its DevTools: open a page, wait for content, click, take a screenshot."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any, Self

import httpx
from websockets.sync.client import connect

WAIT_SECONDS = 300


class Browser:
    """A page of a browser with a temporary profile, for the duration of the ``with`` block."""

    def __init__(self, program: str, *, width: int, height: int) -> None:
        self.size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._program = program
        self._numbers = count(1)

    def __enter__(self) -> Self:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--lang=en"]
        self._process = subprocess.Popen(
            [
                self._program,
                *options,
                "--remote-debugging-port=0",
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        told = Path(self._profile.name) / "DevToolsActivePort"
        deadline = time.monotonic() + WAIT_SECONDS
        while not told.exists() or "\n" not in told.read_text():
            assert self._process.poll() is None, "Chromium did not start"
            assert time.monotonic() < deadline, "waited for Chromium"
            time.sleep(0.1)
        port = told.read_text().splitlines()[0]
        pages = httpx.get(f"http://127.0.0.1:{port}/json/list", timeout=WAIT_SECONDS).json()
        page = next(one for one in pages if one["type"] == "page")
        self._line = connect(page["webSocketDebuggerUrl"], max_size=None)
        self.ask("Emulation.setDeviceMetricsOverride", **self.size)
        return self

    def __exit__(self, *error: object) -> None:
        self._line.close()
        self._process.terminate()
        self._process.wait()
        self._profile.cleanup()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self._numbers)
        self._line.send(json.dumps({"id": number, "method": method, "params": params}))
        while (answer := json.loads(self._line.recv(timeout=WAIT_SECONDS))).get("id") != number:
            continue  # the browser also sends events
        assert "error" not in answer, f"{method}: {answer['error']}"
        found: dict[str, Any] = answer["result"]
        return found

    def goto(self, url: str) -> None:
        """Go to a page."""
        self.ask("Page.navigate", url=url)

    def value(self, script: str) -> Any:
        """Return the value of an expression on the page."""
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression is true on the page."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.value(f"Boolean({script})"):
            assert time.monotonic() < deadline, f"waited for {script}, saw {self.value('document.body.innerText')!r}"
            time.sleep(0.2)

    def rest(self) -> None:
        """Wait until the page has not changed for a second."""
        before, since = "", time.monotonic()
        deadline = since + WAIT_SECONDS
        while time.monotonic() < since + 1 and time.monotonic() < deadline:
            now = self.ask("Page.captureScreenshot", format="png")["data"]
            if now != before:
                before, since = now, time.monotonic()
            time.sleep(0.2)

    def click(self, selector: str) -> None:
        """Click the first element of a CSS selector with the mouse."""
        script = (
            f"(place => JSON.stringify({{x: place.x + place.width / 2, y: place.y + place.height / 2}}))"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        where = json.loads(self.value(script))
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **where)

    def shoot(self, picture: Path) -> None:
        """Write a screenshot as PNG."""
        picture.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
