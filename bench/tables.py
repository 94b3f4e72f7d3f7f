"""Figures formatted for readers, and tables of them."""

import statistics

NOT_INSTALLED = "not installed"


def table(header, rows):
    """Markdown, in columns that also read well as text. The first column has words, the others have
    figures."""
    lines = [list(map(str, line)) for line in [header, *rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    texts = ["| " + " | ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))) + " |"
             for line in lines]
    rule = "| " + " | ".join("-" * width if i == 0 else "-" * (width - 1) + ":"
                             for i, width in enumerate(widths)) + " |"
    return "\n".join([texts[0], rule, *texts[1:]]) + "\n"


def duration(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1000 * size else \
                f"{seconds / size:,.0f} {unit}"
    return f"{seconds * 1e6:.2f} us"


def percent(share):
    return f"{100 * share:.{2 if abs(share) < 0.1 else 1}f} %"


def points(share, write="{:.2f}"):
    """Hundredths of the whole, as columns in % and errors in points have them."""
    return write.format(100 * share)


def count(number):
    return f"{number:,.0f}"


def spread(values, write):
    """The median, and the range of the middle half."""
    median = statistics.median(values)
    if len(values) < 2:
        return write(median)
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    return f"{write(median)} ({write(quarters[0])} to {write(quarters[2])})"
