"""A headless Chromium that tests drive by its DevTools protocol, over pipes and without a package."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium")
WAIT_S = 20


def wait_until(is_so, what, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Page:
    """One tab, with storage of its own."""

    def __init__(self, browser, url, width=1280, height=860, dark=False):
        self.browser, self.troubles = browser, []
        context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        self.context = context
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.size(width, height)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.go(url)

    def call(self, method, **parameters):
        return self.browser.call(method, session=self.session, **parameters)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready === 'true'", "the page is ready")

    def js(self, expression):
        """The value of an expression, or what its promise gives."""
        out = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in out:
            raise AssertionError(f"{expression[:300]}: {json.dumps(out['exceptionDetails'])[:1500]}")
        return out["result"].get("value")

    def wait(self, condition, what, seconds=WAIT_S):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.js(f"!!({condition})"):
                return
            time.sleep(0.02)
        shown = self.js("document.body?.innerText.slice(0, 1500)")
        raise AssertionError(f"not within {seconds} s: {what}; troubles {self.troubles}; the page shows {shown!r}")

    def key(self, key, shift=False):
        codes = {"Enter": 13, "Escape": 27, "Tab": 9}
        event = {"key": key, "modifiers": 8 if shift else 0, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        text = "\r" if key == "Enter" else key if len(key) == 1 else None
        self.call("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def click(self, selector):
        self.js(f"(() => {{ const x = document.querySelector({json.dumps(selector)}); x.focus(); x.click(); }})()")

    def choose_files(self, selector, paths):
        """As if the user had chosen them in the dialog of an input element."""
        found = self.call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")
        self.call("DOM.setFileInputFiles", files=paths, objectId=found["result"]["objectId"])

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)


class Browser:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="bitnet-chromium-", ignore_cleanup_errors=True)
        to_it, self.write_to = os.pipe()
        self.read_from, from_it = os.pipe()
        words = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
                 "--remote-debugging-pipe", "--user-data-dir=" + self.folder.name, "about:blank"]
        # It reads 3 and writes 4.
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{to_it} 4>&{from_it}', "chromium", *words],
                                        pass_fds=(to_it, from_it), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": self.folder.name})
        os.close(to_it)
        os.close(from_it)
        self.rest, self.number, self.pages = b"", 0, {}

    def message(self, end):
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.read_from], [], [], left)[0]:
                raise AssertionError("the browser does not answer")
            part = os.read(self.read_from, 1 << 20)
            if not part:
                raise AssertionError(f"the browser ended: {self.process.poll()}")
            self.rest += part
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        self.number += 1
        sent = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        rest = json.dumps(sent).encode() + b"\0"
        while rest:
            rest = rest[os.write(self.write_to, rest):]
        end = time.monotonic() + WAIT_S
        while True:
            got = self.message(end)
            if got.get("id") == self.number:
                if "error" in got:
                    raise AssertionError(f"{method}: {got['error']}")
                return got["result"]
            self.event(got)

    def event(self, got):
        page, what = self.pages.get(got.get("sessionId")), got.get("params", {})
        if page is None:
            return
        if got["method"] == "Runtime.exceptionThrown":
            page.troubles.append(json.dumps(what["exceptionDetails"])[:1000])
        if got["method"] == "Log.entryAdded" and what["entry"]["source"] in ("security", "violation", "javascript"):
            page.troubles.append(what["entry"]["text"])

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.write_to)
        os.close(self.read_from)
        self.folder.cleanup()
