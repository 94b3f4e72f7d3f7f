"""The HTML page as its user sees it."""

import re

from harness import wait_until_asleep

# Only the canvas knows where frames are; the tooltip says what is under the mouse.
BOX = "const b = document.querySelector('#graph canvas').getBoundingClientRect();"
ROW = 18

# Rows are made as the user scrolls to them; their number is stated above them. The table's text is
# read as textContent: innerText is empty until the frame in which the browser has found that the
# table is near the screen (content-visibility: auto).
FILL_TABLE = """
const table = document.querySelector('#functions'), rows = table.querySelector('tbody').rows;
const count = () => parseInt(/\\d[\\d\\u202f]*/.exec(
  document.querySelector('#function-count').textContent)[0].replace(/\\u202f/g, ''));
return new Promise(done => {
  const look = () => {
    if (table.getAttribute('aria-busy') !== 'true' && rows.length === count()) {
      scrollTo(0, 0);
      return done();
    }
    document.querySelector('#table-end').scrollIntoView();
    setTimeout(look, 10);
  };
  look();
});
"""


class Page:
    """A page in a browser."""

    def __init__(self, browser, path):
        self.browser = browser
        browser.open(path)

    def at(self, row, share=0.5):
        """What the tooltip says about the frame `row` rows from the root, at that part of the
        width."""
        x, y = self.place(row, share)
        self.browser.mouse(x, y)
        return self.browser.text("#tip")

    def place(self, row, share):
        left, bottom, width = self.browser.run(
            BOX + "return [b.left, Math.min(b.bottom, innerHeight), b.width]")
        return left + share * width, bottom - row * ROW - ROW / 2

    def click(self, row, share=0.5, clicks=1):
        self.browser.mouse(*self.place(row, share), clicks)

    def path(self):
        return self.browser.run("return [...document.querySelectorAll('#path button')]"
                                ".map(b => b.innerText)")

    def samples(self):
        return int(re.search(r"([\d\u202f]+) samples?", self.browser.text("#total"))[1]
                   .replace("\u202f", ""))

    def search(self, text):
        self.browser.run("const s = document.querySelector('#search'); s.value = arguments[0];"
                         "s.dispatchEvent(new Event('input'))", text)
        return self.browser.text("#matched")

    def column(self, number):
        """A column of the table, once it shows the search result and all rows."""
        self.browser.run(FILL_TABLE)
        return self.browser.run("return [...document.querySelectorAll('#functions tbody tr')]"
                                ".map(r => r.cells[arguments[0]].textContent)", number)

    def show_idle(self):
        """Shows the threads that only waited for work, which are hidden at first."""
        if self.browser.run("return document.querySelector('#idle').getAttribute('aria-pressed')") == "true":
            self.browser.click("#idle")

    def reset(self):
        self.browser.click("#reset")
        self.show_idle()

    def picture(self):
        return self.browser.run("return document.querySelector('#graph canvas').toDataURL()")


def seconds(text):
    number, unit = text.split()[:2]
    return float(number) / {"s": 1, "ms": 1e3, "µs": 1e6}[unit.rstrip(",")]


def share(text):
    return float(re.search(r"([\d.]+) %", text)[1])


def threads(text):
    return float(re.search(r"([\d.]+) threads", text)[1])


def record(world, fixture, *arguments, ending="html"):
    """Records a fixture whose threads have reached their places."""
    path = world.path(f"{fixture}.{ending}")
    with world.running(fixture, *arguments) as target:
        wait_until_asleep(target.pid, but=("spinning",))
        world.attach(target, "-q", "-o", path, duration="1s")
    return path
