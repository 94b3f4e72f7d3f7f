"""What a terminal shows: as much of xterm as ncurses uses."""

import re

# A control sequence, another escape sequence, or one byte.
PART = re.compile(rb"\x1b\[([?>]?)([0-9;]*)([A-Za-z@])|\x1b[()][A-Z0-9]|\x1b[=>78M]|\x1b\][^\x07]*\x07|.",
                  re.DOTALL)


class Screen:
    def __init__(self, rows, columns):
        self.pending = b""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.y = self.x = 0
        self.top, self.bottom = 0, rows - 1
        self.last = " "
        self.wraps = True

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, data):
        data = self.pending + data
        # An incomplete sequence or character waits for the rest.
        cut = data.rfind(b"\x1b")
        whole = cut < 0 or (PART.match(data[cut:]) and len(PART.match(data[cut:]).group()) > 1)
        self.pending = b"" if whole else data[cut:]
        text = data[:len(data) - len(self.pending)]
        for part in PART.finditer(text):
            if part.group(3):
                if not part.group(1):
                    self.control(part.group(2).decode(), part.group(3).decode())
                elif part.group(2) == b"7":
                    self.wraps = part.group(3) == b"h"
            elif len(part.group()) == 1:
                self.put(part.group().decode("latin-1"))
            elif part.group() == b"\x1bM":
                self.scroll_down()

    def put(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\b":
            self.x = max(self.x - 1, 0)
        elif character == "\n":
            self.line_feed()
        elif character >= " ":
            if self.x == self.columns and self.wraps:
                self.x = 0
                self.line_feed()
            self.x = min(self.x, self.columns - 1)
            self.cells[self.y][self.x] = self.last = character
            self.x += 1
        else:
            assert character in "\a\x0e\x0f", f"byte {character!r}"

    def line_feed(self):
        if self.y == self.bottom:
            del self.cells[self.top]
            self.cells.insert(self.bottom, [" "] * self.columns)
        else:
            self.y = min(self.y + 1, self.rows - 1)

    def scroll_down(self):
        if self.y == self.top:
            del self.cells[self.bottom]
            self.cells.insert(self.top, [" "] * self.columns)
        else:
            self.y -= 1

    def blank(self, y, begin, end):
        self.cells[y][begin:end] = [" "] * (end - begin)

    def control(self, arguments, final):
        numbers = [int(number or 0) for number in arguments.split(";")]
        count = max(numbers[0], 1)
        row = self.cells[self.y]
        if final in "mhlt":  # attributes and modes
            return
        self.x = min(self.x, self.columns - 1) if final != "b" else self.x
        if final == "H":
            self.y = min(count, self.rows) - 1
            self.x = min(max(numbers[1], 1) if len(numbers) > 1 else 1, self.columns) - 1
        elif final == "d":
            self.y = min(count, self.rows) - 1
        elif final == "G":
            self.x = min(count, self.columns) - 1
        elif final in "AB":
            self.y = max(min(self.y + (count if final == "B" else -count), self.rows - 1), 0)
        elif final in "CD":
            self.x = max(min(self.x + (count if final == "C" else -count), self.columns - 1), 0)
        elif final == "K":
            self.blank(self.y, *{0: (self.x, self.columns), 1: (0, self.x + 1),
                                 2: (0, self.columns)}[numbers[0]])
        elif final == "J":
            assert numbers[0] in (0, 2), arguments
            for y in range(self.y if numbers[0] == 0 else 0, self.rows):
                self.blank(y, self.x if y == self.y and numbers[0] == 0 else 0, self.columns)
        elif final == "X":
            self.blank(self.y, self.x, min(self.x + count, self.columns))
        elif final == "b":
            for _ in range(count):
                self.put(self.last)
        elif final == "@":
            row[self.x:] = ([" "] * count + row[self.x:])[:self.columns - self.x]
        elif final == "P":
            row[self.x:] = (row[self.x + count:] + [" "] * count)[:self.columns - self.x]
        elif final == "r":
            self.top, self.bottom = (numbers[0] - 1, numbers[1] - 1) if len(numbers) > 1 else \
                (0, self.rows - 1)
            self.y = self.x = 0
        elif final in "LM":
            for _ in range(count):
                del self.cells[self.bottom if final == "L" else self.y]
                self.cells.insert(self.y if final == "L" else self.bottom, [" "] * self.columns)
        elif final in "ST":
            for _ in range(count):
                del self.cells[self.top if final == "S" else self.bottom]
                self.cells.insert(self.bottom if final == "S" else self.top, [" "] * self.columns)
        else:
            raise AssertionError(f"sequence {arguments!r} {final!r}")
