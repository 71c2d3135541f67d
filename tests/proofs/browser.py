# SPDX-License-Identifier: Apache-2.0
"""A real browser for tests: headless Chromium, driven over a pipe with its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    # The pages are written by the tests; as root there is no sandbox.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# How long an answer may take on a busy machine: it ends a test that hangs, and times nothing.
PATIENCE_S = 120

# The browser reads from descriptor 3 and writes to 4, so the ends of the pipe are put there.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""

Json = dict[str, Any]


def program() -> str | None:
    """Return the browser of this machine, if it has one."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Page:
    """A page in a browser.

    Attributes:
        problems: what was logged, thrown, requested from elsewhere or could not be loaded.
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        """Open an empty page over the two ends of the pipe, as file descriptors."""
        self._to, self._from = to_browser, from_browser
        self._read, self._number, self._session = b"", 0, ""
        self._events: list[Json] = []
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Json:
        """Have the browser do something, and return its answer."""
        self._number += 1
        message: Json = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") != self._number:
                self._events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                result: Json = answer["result"]
                return result

    def _next(self) -> Json:
        while b"\0" not in self._read:
            if not select.select([self._from], [], [], PATIENCE_S)[0]:
                raise TimeoutError(f"the browser said nothing for {PATIENCE_S} seconds")
            part = os.read(self._from, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self._read += part
        text, self._read = self._read.split(b"\0", 1)
        message: Json = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, said: Json) -> None:
        if method == "Network.requestWillBeSent":
            url = said["request"]["url"]
            if not url.startswith(("file:", "data:", "about:")):
                self.problems.append(f"requested {url}")
        elif method == "Log.entryAdded":
            self.problems.append(f"logged {said['entry']['text']}")
        elif method in ("Network.loadingFailed", "Runtime.exceptionThrown"):
            self.problems.append(f"{method} {said}")
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(f"console {said['args']}")

    def show(self, file: Path, *, width: int, dark: bool = False) -> None:
        """Load a file in a window of a width in pixels, and wait until it is there."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[theme])
        self._events.clear()
        self.call("Page.navigate", url=file.resolve().as_uri())
        while all(one.get("method") != "Page.loadEventFired" for one in self._events):
            self._events.append(self._next())

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def picture(self) -> bytes:
        """Return the whole page as a PNG."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        return base64.b64decode(answer["data"])


@contextmanager
def opened(browser: str, folder: Path) -> Iterator[Page]:
    """Start a browser with an empty profile in a folder, and end it afterwards."""
    its_input, to_browser = os.pipe()
    from_browser, its_output = os.pipe()
    ends = [str(its_input), str(its_output)]
    command = [browser, *FLAGS, f"--user-data-dir={folder}"]
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, *ends, *command],
        pass_fds=(its_input, its_output),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(its_input)
    os.close(its_output)
    try:
        yield Page(to_browser, from_browser)
    finally:
        # It ends when its pipe does.
        os.close(to_browser)
        os.close(from_browser)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
