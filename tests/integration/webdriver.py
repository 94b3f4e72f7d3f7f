"""A browser, driven by the W3C WebDriver protocol (w3.org/TR/webdriver2): Debian's chromium."""

import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

from harness import need

# As root there is no sandbox; nothing but the page is to be loaded.
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage"]

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's reference
KEYS = {"Escape": "\ue00c", "Enter": "\ue007", "Backspace": "\ue003", "ArrowUp": "\ue013",
        "ArrowDown": "\ue015", "ArrowLeft": "\ue012", "ArrowRight": "\ue014",
        "Home": "\ue011", "End": "\ue010", "Tab": "\ue004", "Shift": "\ue008"}


def start_driver():
    """chromedriver, and its address. It takes a free port for IPv4 and the same for IPv6: if another
    program has that, it ends, and is started again."""
    for _ in range(5):
        driver = subprocess.Popen([shutil.which("chromedriver"), "--port=0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        said = ""
        for line in driver.stdout:
            said += line
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return driver, f"http://127.0.0.1:{found[1]}"
        driver.wait()
    raise AssertionError(f"chromedriver did not start: {said}")


class Browser:
    """One session; ended by close()."""

    def __init__(self, width=1200, height=900, dark=False):
        need("chromedriver", "chromium")
        self._home = tempfile.TemporaryDirectory(prefix="fgprof-chromium-")
        self._driver, self._base = start_driver()
        flags = [*FLAGS, f"--user-data-dir={self._home.name}", f"--window-size={width},{height}"]
        if dark:
            flags.append("--force-dark-mode")
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "timeouts": {"script": 180000},
            "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": flags},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self._base += "/session/" + answer["sessionId"]

    def _call(self, method, path, body=None):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self._base + path, data, method=method,
                                         headers={"Content-Type": "application/json"})
        # No proxy from the environment may come between this machine and itself.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=200) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()[:500]}") from None

    def open(self, place):
        """A file's path, or a URL."""
        self._call("POST", "/url", {"url": place if ":" in place.split("/")[0] else "file://" + place})

    def run(self, script, *arguments):
        """The result of the function body `script`, run in the page; waits for a promise."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def console(self):
        """The console's output since the last call: errors, warnings and everything else."""
        return self._call("POST", "/se/log", {"type": "browser"})

    def click(self, selector):
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{element[ELEMENT]}/click")

    def choose(self, selector, value):
        """Chooses an option of a select element as a user does: the page gets the event."""
        self.run("const s = document.querySelector(arguments[0]); s.value = arguments[1];"
                 "s.dispatchEvent(new Event('change', {bubbles: true}))", selector, value)

    def keys(self, *keys):
        """Presses keys, one after the other; "Shift+End": together."""
        actions = []
        for key in keys:
            parts = [KEYS.get(part, part) for part in ([key] if len(key) == 1 else key.split("+"))]
            actions += [{"type": "keyDown", "value": part} for part in parts]
            actions += [{"type": "keyUp", "value": part} for part in reversed(parts)]
        self._act({"type": "key", "id": "keyboard", "actions": actions})

    def mouse(self, x, y, clicks=0):
        """Moves the mouse to a place in the window, and clicks."""
        actions = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}]
        for _ in range(clicks):
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self._act({"type": "pointer", "id": "mouse", "actions": actions})

    def drag(self, x, y, to_x):
        """Moves the mouse with its button down."""
        place = {"type": "pointerMove", "y": int(y), "duration": 0}
        self._act({"type": "pointer", "id": "mouse", "actions": [
            {**place, "x": int(x)}, {"type": "pointerDown", "button": 0},
            {**place, "x": int((x + to_x) / 2)}, {**place, "x": int(to_x)},
            {"type": "pointerUp", "button": 0}]})

    def _act(self, source):
        self._call("POST", "/actions", {"actions": [source]})

    def cpu_ms(self):
        """CPU time of the page's main thread, with layout and painting, since the first call."""
        self._call("POST", "/goog/cdp/execute", {
            "cmd": "Performance.enable", "params": {"timeDomain": "threadTicks"}})
        answer = self._call("POST", "/goog/cdp/execute", {
            "cmd": "Performance.getMetrics", "params": {}})
        metrics = {metric["name"]: metric["value"] for metric in answer["metrics"]}
        return 1000 * metrics["TaskDuration"]

    def screenshot(self):
        """A PNG, in base64."""
        return self._call("GET", "/screenshot")

    def close(self):
        try:
            self._call("DELETE", "")
        finally:
            self._driver.kill()
            self._driver.wait()
            self._driver.stdout.close()
            self._home.cleanup()
