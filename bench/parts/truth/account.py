"""The account that the programs of bench/targets/truth keep of their own time, compared with a profile."""

import collections

import watchers

NOTHING = "(none of these)"
LEAST_SHOWN = 0.0005
VERDICTS = ["within 3 sigma", "within 1 point", "off"]

# One way to watch, at a rate, on an idle or a busy machine.
Run = collections.namedtuple("Run", "way rate_hz load")
# One function, or function and state, of one kind of share, by one run.
Row = collections.namedtuple("Row", "kind run label each_s truth shown samples")


def error_of(row):
    return row.shown - row.truth


def deviation_of(row):
    """The standard deviation of a share among this many samples: binomial. Without samples there is none.
    Accounts that are read one after the other may make a share slightly negative."""
    truth = min(max(row.truth, 0), 1)
    return (truth * (1 - truth) / row.samples) ** 0.5 if row.samples else 0


def verdict_of(row):
    error = abs(error_of(row))
    if error <= 3 * deviation_of(row):
        return VERDICTS[0]
    return VERDICTS[1] if error <= 0.01 else VERDICTS[2]


def badness(row):
    return VERDICTS.index(verdict_of(row)), abs(error_of(row))


# ---- What the target knows of itself ----


def spent_in(target_before, target_after, threads):
    """{function: Counter of calls, wall_ns, cpu_ns and delay_ns} between two answers."""
    spent = collections.defaultdict(collections.Counter)
    for before, after in zip(target_before["threads"], target_after["threads"]):
        if after["thread"] in threads:
            for function, totals in after["functions"].items():
                spent[function].update(totals)
                spent[function].subtract(before["functions"][function])
    return spent


def check(before, after):
    """Checks that the parts of each thread's time add up to all of it."""
    elapsed_ns = after["ns"] - before["ns"]
    for first, last in zip(before["threads"], after["threads"]):
        spent = spent_in({"threads": [first]}, {"threads": [last]}, [last["thread"]])
        wall_ns = sum(totals["wall_ns"] for totals in spent.values())
        wall_ns += last["open_ns"] - first["open_ns"]
        if abs(wall_ns - elapsed_ns) > 0.02 * elapsed_ns:
            raise RuntimeError(f"the account of {last['thread']} has {wall_ns} of {elapsed_ns} ns")


def asleep_ns(totals):
    return totals["wall_ns"] - totals["cpu_ns"] - totals["delay_ns"]


def weights_of(spent, kind):
    """{label: ns}"""
    if kind == "running":
        return {function: totals["cpu_ns"] for function, totals in spent.items()}
    if kind == "wall":
        return {function: totals["wall_ns"] for function, totals in spent.items()}
    if kind == "off":
        return {function: totals["wall_ns"] - totals["cpu_ns"] for function, totals in spent.items()}
    weights = {}
    for function, totals in spent.items():
        weights[f"{function}, running"] = totals["cpu_ns"]
        weights[f"{function}, runnable"] = totals["delay_ns"]
        weights[f"{function}, asleep"] = asleep_ns(totals)
    return weights


# ---- What a way shows of it ----


def counts_of(samples, kind, threads, functions):
    """{label: number of samples}, with those that show none of the functions."""
    counts = collections.Counter()
    for sample in samples:
        if sample.thread not in threads or (kind == "running" and sample.state != "running"):
            continue
        function = next((name for name in sample.functions if name in functions), NOTHING)
        counts[f"{function}, {sample.state}" if kind == "state" else function] += sample.count
    return counts


def rows_of(run, kind, spent, samples, threads):
    weights = weights_of(spent, kind)
    counts = counts_of(samples, kind, threads, set(spent))
    all_ns, number = sum(weights.values()), sum(counts.values())
    if not number:
        raise watchers.Failed("no samples")
    rows = []
    for label in [*weights, *(label for label in counts if label not in weights)]:
        totals = spent.get(label.partition(",")[0], {"calls": 0, "wall_ns": 0})
        each_s = totals["wall_ns"] / totals["calls"] / 1e9 if totals["calls"] else 0
        row = Row(kind, run, label, each_s, weights.get(label, 0) / all_ns, counts[label] / number,
                  number)
        if max(row.truth, row.shown) >= LEAST_SHOWN:
            rows.append(row)
    return rows
