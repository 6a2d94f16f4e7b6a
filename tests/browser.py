"""A headless Chromium for tests, driven through its debugging pipe: opens a page, hears its console, asks and looks."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
INSTALL = (
    f"no browser found (looked for {', '.join(NAMES)}); the tests of the page need one: "
    "`apt-get install --no-install-recommends chromium`, or put it on PATH"
)
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
_PATIENCE_SECONDS = 120.0
"""Machines that run tests are busy."""


class Browser:
    """One browser with one page. Its processes end with the `with` statement, whatever happens in it."""

    def __init__(self) -> None:
        found = next(filter(None, map(shutil.which, NAMES)), None)
        if found is None:
            raise AssertionError(INSTALL)
        self._executable = found
        self.messages: list[str] = []
        """What the console got and what was thrown, with its level."""
        self.requests: list[str] = []
        """The addresses of everything that the page asked for."""
        self._events: list[dict[str, Any]] = []
        self._buffer = b""
        self._number = 0

    def __enter__(self) -> Self:
        self.profile = tempfile.mkdtemp(prefix="tessera-browser-")
        # The browser reads commands from its descriptor 3 and answers on 4.
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        # Above 4, so that moving one into its place does not overwrite the other.
        high = [_above_four(descriptor) for descriptor in (commands, answers)]
        script = f'exec 3<&{high[0]} 4>&{high[1]} {high[0]}<&- {high[1]}>&-; exec "$@"'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", script, "browser", self._executable, *_FLAGS, f"--user-data-dir={self.profile}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=high,
            start_new_session=True,
            env={**os.environ, "HOME": self.profile, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
        )
        for descriptor in high:
            os.close(descriptor)
        try:
            target = self._call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._commands)
        os.close(self._answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, path: Path, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Opens a file and waits until it is loaded and laid out."""
        self.messages.clear()
        self.requests.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._receive(deadline)
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """A press of the mouse in the middle of the element, as the user makes it."""
        point = self.evaluate(
            f"""(() => {{
                const element = document.querySelector({json.dumps(selector)});
                element.scrollIntoView({{block: "center", inline: "center"}});
                const box = element.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=point[0], y=point[1], button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        """The whole page, below the fold too."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(answer["data"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the page; what happened meanwhile is in `messages` and `requests` afterwards."""
        return self._call(method, self._session, **parameters)

    def _call(self, method: str, session: str | None = None, /, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            message = self._receive(deadline)
            if message.get("id") == self._number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"the browser did not answer within {_PATIENCE_SECONDS:.0f} s")
            data = os.read(self._answers, 1 << 16)
            if not data:
                raise AssertionError(f"the browser ended by itself ({self._executable})")
            self._buffer += data
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case None:
                return
            case "Runtime.consoleAPICalled":
                shown = " ".join(str(value.get("value", value)) for value in parameters["args"])
                self.messages.append(f"{parameters['type']}: {shown}")
            case "Runtime.exceptionThrown":
                self.messages.append(f"exception: {parameters['exceptionDetails']}")
            case "Log.entryAdded":
                self.messages.append(f"{parameters['entry']['level']}: {parameters['entry']['text']}")
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case _:
                pass
        self._events.append(message)


def _above_four(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return moved
