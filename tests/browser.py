# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests of pages, driven through a pipe with the DevTools protocol."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
NEEDED = "needs chromium: apt-get install chromium"
KEYS = {  # the text and the key code that go with a key's name
    "Enter": ("\r", 13),
    "Tab": ("", 9),
    "Escape": ("", 27),
    " ": (" ", 32),
    "End": ("", 35),
    "Home": ("", 36),
    "ArrowLeft": ("", 37),
    "ArrowUp": ("", 38),
    "ArrowRight": ("", 39),
    "ArrowDown": ("", 40),
}
TIMEOUT = 60.0
# The ratio of WCAG 2 between the colours of the text of an element and of the page behind it.
CONTRAST = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const part = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
      .map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/rgba\\(.*, 0\\)|transparent/.test(colour)) return colour;
    }
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const text = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!text || e.closest("script, svg, noscript") || !e.checkVisibility()) continue;
    const both = [light(getComputedStyle(e).color), light(behind(e))];
    found.push([(Math.max(...both) + 0.05) / (Math.min(...both) + 0.05), e.outerHTML.slice(0, 80)]);
  }
  return found.sort((a, b) => a[0] - b[0]);
})()"""


class Browser:
    """One page. `errors` holds what the page throws or logs as an error."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        ours, theirs = os.pipe(), os.pipe()  # what we write, what it writes
        os.set_inheritable(ours[0], True)

        def numbered() -> None:
            """It reads from 3 and writes to 4."""
            read, write = os.dup(ours[0]), os.dup(theirs[1])
            os.dup2(read, 3)
            os.dup2(write, 4)

        command = [CHROMIUM, "--headless=new", "--remote-debugging-pipe", "--no-sandbox"]
        command += ["--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio"]
        command += [f"--user-data-dir={profile}", "about:blank"]
        with (profile.parent / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, close_fds=False, preexec_fn=numbered, stdout=log, stderr=log
            )
        os.close(ours[0])
        os.close(theirs[1])
        self._write, self._read = ours[1], theirs[0]
        self._rest, self._last, self._session = b"", 0, ""
        self.errors: list[str] = []
        self.requests: list[str] = []
        pages = self.call("Target.getTargets")["targetInfos"]
        target = next(p["targetId"] for p in pages if p["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    # ---- the protocol ----

    def call(self, method: str, **params: Any) -> Any:
        self._last += 1
        sent: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            sent["sessionId"] = self._session
        os.write(self._write, json.dumps(sent).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._event(message)

    def _message(self) -> Any:
        end = time.monotonic() + TIMEOUT
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            part = os.read(self._read, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("chromium does not answer")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _event(self, message: Any) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    # ---- what tests do ----

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.wait(f"location.href == {json.dumps(address)} && document.readyState == 'complete'")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + TIMEOUT
        while not self.run(condition):
            assert time.monotonic() < end, f"{condition} has not come true"
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """A click of the mouse into the middle of an element, which must not be covered."""
        at = self._middle(selector)
        while (later := self._middle(selector)) != at:  # the page is still being laid out
            at = later
        x, y, free = at
        assert free, f"{selector} is covered"
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def _middle(self, selector: str) -> Any:
        """Where an element is after two frames, and whether a click there meets it."""
        return self.run(f"""(async () => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{ block: "center", behavior: "instant" }});
            const frame = () => new Promise((done) => requestAnimationFrame(done));
            await frame(), await frame();
            const box = element.getClientRects()[0];
            const at = [box.x + box.width / 2, box.y + box.height / 2];
            return [...at, element.contains(document.elementFromPoint(...at))];
        }})()""")

    def choose(self, selector: str, word: str) -> None:
        """A word of a select element."""
        self.run(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.value = {json.dumps(word)};
            element.dispatchEvent(new Event("change"));
        }})()""")

    def press(self, key: str) -> None:
        text, code = KEYS.get(key, (key, ord(key.upper()) if len(key) == 1 else 0))
        known = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **known)
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)

    def scheme(self, name: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": name}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def accessible(self) -> list[dict[str, Any]]:
        """The tree that screen readers get: role and name of each node."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            {"role": n["role"]["value"], "name": n.get("name", {}).get("value", "")}
            for n in nodes
            if not n["ignored"]
        ]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
