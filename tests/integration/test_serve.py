"""Profiles over HTTP, as Go programs serve them."""

import contextlib
import html
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import (HANGS_S, Skip, alone, end, folded, kept_open, need, signal_service, soak_until, soaking,
                     status_field, tool, users_build, wait_for, wait_until_asleep)
from webdriver import Browser


class Server:
    """A serving profiler that has printed its address."""

    def __init__(self, world, *arguments, listen="127.0.0.1:0", **options):
        self.sampler = world.start("serve", "--listen", listen, *arguments, **options)
        self.said = self.next_line()
        where = re.fullmatch(r"fgprof-c: serving profiles of (.+) at (http://(.+):(\d+)/|unix:(.+))\n", self.said)
        assert where, (self.said, self.sampler.stderr.read())
        self.what, self.url, self.host, self.port, self.path = where.groups()

    def next_line(self):
        return self.sampler.stderr.readline()

    def connect(self):
        connection = http.client.HTTPConnection(self.host.strip("[]"), int(self.port), timeout=HANGS_S)
        connection.connect()
        return connection

    def ask(self, path, method="GET", body=None, **headers):
        """Returns the status, the headers and the body."""
        connection = self.connect()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def text(self, path):
        status, _, body = self.ask(path)
        assert status == 200, (path, status, body)
        return body.decode()

    def fails(self, path, status, why):
        got, headers, body = self.ask(path)
        assert got == status and re.search(why, body.decode()), (path, got, body)
        assert headers["X-Go-Pprof"] == "1" and headers["Content-Type"].startswith("text/plain"), headers

    def metric(self, name):
        return float(re.search(rf"^{re.escape(name)} (\S+)$", self.text("/metrics"), re.M)[1])

    def kept(self):
        """Bytes of memory that are kept, by kind."""
        return {kind: int(kept) for kind, kept in
                re.findall(r'^fgprof_kept_bytes\{kind="(\w+)"\} (\d+)$', self.text("/metrics"), re.M)}


@contextlib.contextmanager
def serving(world, *arguments, **options):
    server = Server(world, *arguments, **options)
    try:
        yield server
    finally:
        if server.sampler.poll() is None:
            server.sampler.kill()
        server.sampler.communicate()


def seconds_of(text):
    """How long a legacy profile's threads were seen, in seconds at 99 Hz."""
    return int(re.match(r"wallclock profile: total (\d+)\n", text)[1]) / 99


def top(url):
    """The first output of go tool pprof: its comments and a table. It keeps what it has fetched."""
    with tempfile.TemporaryDirectory() as directory:
        return tool("go", "tool", "pprof", "-top", url, env=dict(os.environ, PPROF_TMPDIR=directory))


def test_go_tool_pprof_reads_each_path(world):
    need("go")
    with world.running("holders", 60) as target, serving(world, "-p", target.pid, "-F", 199) as server:
        assert server.what == f"fixture-holders ({target.pid})", server.said
        for path, kind, function in (
                ("fgprof?seconds=1", "time", "pthread_mutex_lock"),
                ("pprof/block?seconds=1", "delay", "pthread_mutex_lock"),
                ("pprof/mutex?seconds=1", "delay", "inner_hold"),
                ("pprof/block", "delay", "pthread_mutex_lock"), ("pprof/mutex", "delay", "inner_hold"),
                ("fgprof?last=10s", "time", "pthread_mutex_lock"),
                ("pprof/profile?seconds=1", "cpu", "computing_hold"),
                ("pprof/goroutine", "thread", "fixture")):
            shown = top(server.url + "debug/" + path)
            assert f"\nType: {kind}\n" in shown and function in shown, (path, shown)
            assert "\nfgprof-c serve " in shown or kind == "thread", (path, shown)
        assert not end(server.sampler)[0]


def test_each_request_has_its_own_time(world):
    """Two phases of a program; each request sees one, and `last` sees both."""
    with world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            serving(world, "-p", target.pid) as server:
        first = folded(server.text("/debug/fgprof?seconds=1&format=folded"))
        target.stdin.write("..")
        target.stdin.flush()
        wait_for(lambda: "in_second" in server.text("/debug/pprof/goroutine?debug=2"), "the next phase")
        second = folded(server.text("/debug/fgprof?seconds=1&format=folded"))
        both = folded(server.text("/debug/fgprof?last=60s&format=folded"))

        def count(stacks, name):
            return sum(count for stack, count in stacks.items() if name in stack)
        assert count(first, "in_first") > 80 and not count(first, "in_second"), first
        assert count(second, "in_second") > 80 and not count(second, "in_first"), second
        for name, stacks in (("in_first", first), ("in_second", second)):
            assert count(both, name) >= count(stacks, name), both
        # As long as it was asked for, for both threads.
        for stacks in first, second:
            assert 0.95 < sum(stacks.values()) / (2 * 99) < 1.15, stacks


def test_scrapers(world):
    """The default requests of Grafana Alloy's pyroscope.scrape and Parca, except for the seconds: their
    paths, and the types by which they distinguish profiles."""
    need("go")
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        for path, types in (("pprof/profile?seconds=1", "samples/count cpu/nanoseconds"),
                            ("pprof/block", "contentions/count delay/nanoseconds"),
                            ("pprof/mutex?seconds=1", "contentions/count delay/nanoseconds"),
                            ("pprof/goroutine", "thread/count"),
                            ("fgprof?seconds=1", "samples/count time/nanoseconds")):
            status, headers, body = server.ask("/debug/" + path, Accept="*/*", **{"Accept-Encoding": "gzip"})
            assert status == 200 and "Content-Encoding" not in headers, (path, headers)
            kept = world.path("scraped.pb.gz")
            open(kept, "wb").write(body)
            raw = tool("go", "tool", "pprof", "-raw", kept).replace("[dflt]", "")
            assert f"Samples:\n{types}" in raw, (path, raw[:300])
        for name in "allocs", "heap":
            assert server.ask("/debug/pprof/" + name)[0] == 404


def test_formats(world):
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        for form, kind, begin in (
                ("pprof", "application/octet-stream", b"\x1f\x8b"), ("folded", "text/plain", b"holder"),
                ("text", "text/plain", b"wallclock profile: total "), ("html", "text/html", b"<!DOCTYPE html>"),
                ("report", "text/plain", b""), ("speedscope", "application/json", b"{"), ("firefox", "application/octet-stream", b"\x1f\x8b"), ("raw", "application/octet-stream", b"\x1f\x8b")):
            status, headers, body = server.ask(f"/debug/fgprof?last=10s&format={form}")
            assert status == 200 and headers["Content-Type"].split(";")[0] == kind, (form, headers)
            assert form == "folded" or body.startswith(begin), (form, body[:100])
            assert re.fullmatch(r'(attachment|inline); filename="fgprof\.[a-z.]+"',
                                headers["Content-Disposition"]), headers
            assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
        kept = world.path("kept.fgprof")
        open(kept, "wb").write(body)
        report = world.fgprof("report", kept)
        assert re.search(r"^  reason: the last [\d.]+ s: 10 s were asked for, and (there|the rest) is ",
                         report.stdout, re.M), report.stdout
        assert report.returncode == 0 and "mutex g_first" in report.stdout, report
        # They have the order of time, of the seconds to come, too.
        assert world.fgprof("convert", kept, "-f", "speedscope").returncode == 0
        shown = json.loads(server.text("/debug/fgprof?seconds=1&format=speedscope"))
        assert len(shown["profiles"]) == 6, [one["name"] for one in shown["profiles"]]
        for one in shown["profiles"]:
            assert 0.9e9 < sum(one["weights"]) < 2e9, one["weights"]
            assert one["startValue"] < 0.2e9, one["startValue"]
        assert server.text("/debug/pprof/block?debug=1").startswith("--- contention:\n")
        assert server.text("/debug/pprof/mutex?debug=1").startswith("--- mutex:\n")
        assert server.text("/debug/pprof/goroutine?debug=1").startswith("thread profile: total 6\n")
        dump = server.text("/debug/pprof/goroutine?debug=2")
        assert f"process {target.pid}: 6 threads" in dump and '"holder"' in dump, dump
        command = open(f"/proc/{target.pid}/cmdline", "rb").read()
        assert server.ask("/debug/pprof/cmdline")[2] == command.rstrip(b"\0")
        status, _, body = server.ask("/debug/pprof/symbol", "POST", "0x401000+0x402000")
        assert status == 200 and body == b"num_symbols: 0\n", body


def test_bad_requests(world):
    with world.running("holders", 60) as target, \
            serving(world, "-p", target.pid, "--max-seconds", 5) as server:
        for path, status, why in (
                ("/debug/fgprof?seconds=0", 400, "seconds must be a whole number from 1 to 5"),
                ("/debug/fgprof?seconds=6", 400, "from 1 to 5"), ("/debug/fgprof?seconds=1x", 400, "whole"),
                ("/debug/fgprof?seconds=-1", 400, "whole"), ("/debug/fgprof?seconds=", 400, "whole"),
                ("/debug/fgprof?seconds=1&format=svg", 400, "pprof, folded, text, html, speedscope, firefox, report or raw"),
                ("/debug/fgprof?last=2h", 400, "at most 60s"), ("/debug/fgprof?last=0", 400, "a time such as"),
                ("/debug/fgprof?last=1s&seconds=1", 400, "one of them"),
                ("/debug/pprof/block?seconds=1&debug=1", 400, "can't be combined"),
                ("/debug/pprof/mutex?debug=3", 400, "debug must be .* 0 to 2"),
                ("/debug/pprof/goroutine?seconds=1", 400, "one moment"),
                ("/debug/pprof/heap", 404, "no heap profile"), ("/debug/pprof/allocs", 404, "needed for heap profiles"),
                ("/debug/pprof/threadcreate?seconds=1&debug=1", 400, "can't be combined"),
                ("/debug/pprof/trace", 404, "no such page"), ("/../etc/passwd", 404, "no such page")):
            server.fails(path, status, why)
        for method in "POST", "PUT", "DELETE", "OPTIONS":
            status, headers, _ = server.ask("/metrics", method)
            assert status == 405 and headers["Allow"] == "GET, HEAD", (method, status)
            assert "Access-Control-Allow-Origin" not in headers
        # A page of another site can lead its own name here, but the browser still tells that name.
        for host, status in (("evil.example", 403), ("evil.example:6060", 403), ("127.0.0.1.evil.example", 403),
                             ("", 403), ("[::1", 403), ("localhost", 200), ("LOCALHOST:1", 200),
                             ("127.0.0.1:6060", 200), ("[::1]:6060", 200), ("127.9.9.9", 200)):
            assert server.ask("/metrics", Host=host)[0] == status, host
        for mode, destination, status in (("no-cors", "empty", 403), ("navigate", "document", 200),
                                          ("navigate", "iframe", 403)):
            assert server.ask("/metrics", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode,
                                             "Sec-Fetch-Dest": destination})[0] == status, destination
        assert server.ask("/metrics", **{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"})[0] == 200
        assert server.ask("/metrics?" + "x" * 100000)[0] in (414, 431)
        # The head of an answer needs no profile.
        begin = time.monotonic()
        for path in "/debug/fgprof?seconds=5", "/debug/pprof/profile?seconds=5", "/debug/pprof/goroutine", "/":
            status, headers, body = server.ask(path, "HEAD")
            assert status == 200 and not body, (path, status, body)
            # No length is better than a wrong one.
            assert ("Content-Length" in headers) == (path == "/"), (path, headers)
        assert time.monotonic() - begin < 5, "HEAD waited for a profile"
        assert server.ask("/debug/fgprof?seconds=6", "HEAD")[0] == 400


def test_what_is_old_is_forgotten(world):
    """With --keep, a phase of the program that is over is gone, also from the totals."""
    with world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            serving(world, "-p", target.pid, "--keep", "1s", "--keep-memory", 4) as server:
        wait_for(lambda: "in_first" in server.text("/debug/fgprof?last=1s&format=folded"), "the first phase")
        target.stdin.write("..")
        target.stdin.flush()
        wait_for(lambda: "in_second" in server.text("/debug/pprof/goroutine?debug=2"), "the next phase")
        wait_for(lambda: "in_first" not in server.text("/debug/fgprof?last=1s&format=folded"), "it to be forgotten")
        last = server.text("/debug/fgprof?last=1s&format=text")
        assert "in_second" in last and seconds_of(last) > 2 * 0.9, last
        server.fails("/debug/fgprof?last=2s", 400, "at most 1s")
        server.fails("/debug/fgprof?seconds=2&format=speedscope", 400, "order of time is kept for 1s")
        # A request for a longer time gets all of it.
        assert seconds_of(server.text("/debug/fgprof?seconds=3&format=text")) > 2 * 3 * 0.95


def after_births(target, count):
    """Waits until this many threads of the fixture churn have been born."""
    while True:
        line = target.stdout.readline()
        assert line, "the fixture has ended"
        if int(line.split()[0]) >= count:
            return


@alone
@users_build
def test_memory_does_not_grow_with_threads_that_have_ended(world):
    """Neither if they share a name, nor if each has its own; and all of them stay counted."""
    def check(names):
        with world.running("churn", 300, 1000, 200, 0, names) as target, \
                serving(world, "-p", target.pid, "--keep", "1s") as server:
            def look(births):
                after_births(target, births)
                made = int(re.match(r"threadcreate profile: total (\d+)\n",
                                    server.text("/debug/pprof/threadcreate?debug=1"))[1])
                server.text("/debug/fgprof?last=1s&format=text")
                return made, int(status_field(server.sampler.pid, "RssAnon").split()[0])
            made_early, early_kb = look(16 * 1024)
            made_late, late_kb = look(64 * 1024)
            # A birth is not seen if the kernel does not say so.
            assert made_late > made_early, (made_early, made_late)
            assert late_kb < early_kb + 2500, (names, early_kb, late_kb)
    for names in "counted", "named":
        check(names)


LIMITED = "checkpoints", "stacks", "waits", "timeline", "strings", "objects", "labels", "processes"


def grows_by(world, kind, warm_up, more, shown, *arguments):
    """By how many KiB the server's memory grows, and its open files, for this many more things that come and
    go, after this many have gone; and by how many bytes what is kept grows, by kind. Waits until the last
    second shows what is to be shown of them: not all that live for milliseconds can be read."""
    with soaking(world, kind) as target, \
            serving(world, "-p", target.pid, "--keep", "1s", *arguments) as server:
        def last_second():
            return server.text("/debug/fgprof?last=1s&format=text")

        def look(least):
            soak_until(target, least, kind)
            last_second()
            return *kept_open(server.sampler.pid), server.kept()
        early_kb, early_files, early = look(warm_up)
        late_kb, late_files, late = look(warm_up + more)
        wait_for(lambda: re.search(shown, last_second()), shown, seconds=30)
        return late_kb - early_kb, late_files - early_files, {kind: late[kind] - early[kind] for kind in late}


@users_build
def test_memory_does_not_grow_with_processes_that_have_ended(world):
    """Nor with the creators of threads: each process's first thread was created, too."""
    grown_kb, _, _ = grows_by(world, "processes", 3000, 5000, r'"process":"tool-\d"', "--children")
    assert grown_kb < 2500, grown_kb


@users_build
def test_memory_without_keep_is_bounded(world):
    """Programs come and go within the minute that is kept separately: more than fits in 1 MiB. Those that
    have ended are then shown by name, with as little loss in that minute as possible. Profiles since the
    start stay complete."""
    with soaking(world, "programs") as target, \
            serving(world, "-p", target.pid, "--children", "--keep-memory", 1) as server:
        begin = time.monotonic()

        def look(least):
            soak_until(target, least, "programs")
            text = server.text("/debug/fgprof?last=60s&format=text")
            return kept_open(server.sampler.pid)[0], text, server.kept()
        early_kb, *_ = look(2000)
        late_kb, text, kept = look(6000)
        since_start = server.text("/debug/pprof/block?debug=1")
        joined = server.metric("fgprof_processes_joined_total")
        elapsed_s = time.monotonic() - begin
    assert joined > 1000, joined
    assert re.search(r'"process":"own-\d+","process_id":0\b|"process":"\[other\]"', text), text[:2000]
    assert since_start.startswith("--- contention:\n")
    assert sum(kept[kind] for kind in LIMITED) < 3 << 20, kept
    assert late_kb < early_kb + 5000, (early_kb, late_kb, elapsed_s, kept)


@users_build
def test_stacks_without_keep_are_bounded(world):
    """Beyond half of the memory, further stacks are not kept, and the server says so; their time stays
    counted."""
    with soaking(world, "libraries") as target, \
            serving(world, "-p", target.pid, "-F", 999, "--keep-memory", 1) as server:
        soak_until(target, 5000, "libraries")
        wait_for(lambda: server.metric("fgprof_samples_not_kept_total") > 100, "samples without a stack", seconds=60)
        text = server.text("/debug/fgprof?last=60s&format=folded")
        kept = server.kept()
    assert "[truncated: stack not kept]" in text, text[:2000]
    assert "spin_once" in text, text[:2000]
    assert kept["stacks"] < 1 << 20, kept


@alone
@users_build
def test_memory_does_not_grow_with_libraries_that_were_unloaded(world):
    """Nor do open files: a library is kept open only while something that is kept needs its names."""
    grown_kb, grown_files, _ = grows_by(world, "libraries", 1500, 6000, "spin_once")
    assert grown_kb < 2500 and grown_files < 150, (grown_kb, grown_files)


@users_build
def test_memory_does_not_grow_with_code_that_was_replaced(world):
    """And names are those of the code that runs now."""
    _, _, grown = grows_by(world, "code", 1000, 3000, r"generated-[3-9]\d\d\d\b")
    assert grown["code"] < 150_000, grown


def cpu_and_ticks(server):
    metrics = server.text("/metrics")
    return [float(re.search(rf"^{name} (\S+)$", metrics, re.M)[1])
            for name in ("process_cpu_seconds_total", "fgprof_ticks_total")]


def check_flat(world, kind, warm_up, part, *arguments):
    """Nothing grows with things that come and go, after this many have gone: neither what is kept, nor
    memory, nor open files, nor CPU time for each tick. It is measured once the program has stopped for so
    long that nothing of them is kept any more."""
    with soaking(world, kind) as target, \
            serving(world, "-p", target.pid, "--keep", "1s", *arguments) as server:
        def look():
            server.text("/debug/fgprof?last=1s&format=text")
            return *kept_open(server.sampler.pid), sum(server.kept().values())

        def is_flat():
            """Waits for what is released late on a busy machine: a leak is never released."""
            grown[:] = [after - before for before, after in zip(early, look())]
            return grown[0] < 2500 and grown[1] < 50 and grown[2] < 40_000

        def cost_us(until):
            """CPU time for each tick, and for each thing, until there are this many, including a profile."""
            cpu_s, ticks = cpu_and_ticks(server)
            soak_until(target, until, kind)
            assert seconds_of(server.text("/debug/fgprof?last=1s&format=text")) > 0
            late_cpu_s, late_ticks = cpu_and_ticks(server)
            return [1e6 * (late_cpu_s - cpu_s) / count for count in (late_ticks - ticks, part)]
        soak_until(target, warm_up, kind)
        server.text("/debug/fgprof?last=1s&format=text")
        early_us = cost_us(warm_up + part)
        target.send_signal(signal.SIGSTOP)
        time.sleep(1.6)
        early, grown = look(), []
        target.send_signal(signal.SIGCONT)
        late_us = [cost_us(warm_up + (2 + number) * part) for number in range(3)]
        target.send_signal(signal.SIGSTOP)
        try:
            wait_for(is_flat, f"memory that does not grow with {kind}", seconds=10)
        finally:
            print(f"{kind}: more than {early} KiB, files and bytes kept: {grown}; "
                  f"{[round(us) for us, _ in (early_us, *late_us)]} us of CPU for a tick")
            target.send_signal(signal.SIGCONT)
    # If something grows, the last ones cost more, for a tick and for a thing. On a busy machine a tick has
    # fewer things and a thing more ticks, so that one of the two costs more.
    assert any(us < 1.5 * before for later in late_us[1:] for us, before in zip(later, early_us)), (early_us, late_us)


@alone
@users_build
def test_nothing_grows_with_programs(world):
    """The names of some 1,500 that have ended are kept."""
    check_flat(world, "programs", 1800, 200, "--children")


@users_build
def test_nothing_grows_with_plugins(world):
    """All 1,000 have been loaded once."""
    check_flat(world, "plugins", 1000, 200)


@users_build
def test_nothing_grows_with_upgrades(world):
    check_flat(world, "upgrades", 300, 200)


@users_build
def test_nothing_grows_with_values_of_labels(world):
    check_flat(world, "labels", 300, 250)


@users_build
def test_nothing_grows_with_locks(world):
    check_flat(world, "locks", 200, 150)


@users_build
def test_nothing_grows_with_sockets(world):
    check_flat(world, "sockets", 200, 300)


def test_metrics_say_what_is_kept(world):
    """Memory by kind, together no more than the process has."""
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        wait_for(lambda: "computing_hold" in server.text("/debug/fgprof?last=1s&format=folded"), "samples")
        kept = server.kept()
        assert {"stacks", "timeline", "strings", "labels", "waits", "modules"} < set(kept), kept
        for kind in "stacks", "timeline", "strings", "waits", "mappings", "modules", "unwinding", "copy", "names":
            assert kept[kind] > 0, (kind, kept)
        rss_kb = int(status_field(server.sampler.pid, "RssAnon").split()[0])
        assert sum(kept.values()) < rss_kb * 1024, (kept, rss_kb)


def test_many_requests_cost_one_sampling(world):
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        before, begin = server.metric("fgprof_ticks_total"), time.monotonic()
        answers = {}

        def ask(number):
            answers[number] = server.text("/debug/fgprof?seconds=2&format=text")
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        wait_for(lambda: server.metric("fgprof_requests_in_progress") > 1, "requests at once")
        for thread in threads:
            thread.join()
        assert len(answers) == 16, "some have failed"
        passed_s, ticks = time.monotonic() - begin, server.metric("fgprof_ticks_total") - before
        assert ticks < 1.2 * 99 * passed_s + 20, (ticks, passed_s)
        # Six threads each; those that are answered later are of somewhat more.
        for text in answers.values():
            assert 6 * 2 * 0.95 < seconds_of(text) < 6 * passed_s * 1.1, seconds_of(text)
        assert server.metric("fgprof_requests_in_progress") == 0


def test_slow_clients_cost_nobody_else(world):
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        slow = [socket.create_connection((server.host, int(server.port))) for _ in range(40)]
        try:
            for i, client in enumerate(slow):
                # Half of a head; or a whole one, and the answer is not read.
                client.sendall(b"GET / HTTP/1.1\r\nHost: local" if i % 4 else
                               b"GET /debug/fgprof?last=60s&format=html HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert server.text("/debug/fgprof?seconds=1&format=folded")
            # One byte at a time is enough to be answered.
            for byte in b"host\r\n\r\n":
                slow[1].sendall(bytes([byte]))
                time.sleep(0.05)
            assert slow[1].recv(15) == b"HTTP/1.1 200 OK"
        finally:
            for client in slow:
                client.close()


def test_a_client_that_goes_away_is_noticed(world):
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        clients = [server.connect() for _ in range(3)]
        for client in clients:
            client.request("GET", "/debug/fgprof?seconds=300")
        wait_for(lambda: server.metric("fgprof_requests_in_progress") == 3, "the requests")
        for client in clients:
            client.close()
        wait_for(lambda: server.metric("fgprof_requests_in_progress") == 0, "their end")


def test_the_process_ends_before_the_profile(world):
    """The request is answered with the result so far, and the server ends."""
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        client = server.connect()
        client.request("GET", "/debug/fgprof?seconds=300&format=folded")
        wait_for(lambda: server.metric("fgprof_requests_in_progress") == 1, "the request")
        ticks = server.metric("fgprof_ticks_total")
        wait_for(lambda: server.metric("fgprof_ticks_total") > ticks + 99, "a second of samples")
        target.kill()
        answer = client.getresponse()
        assert answer.status == 200, answer.status
        assert any("outer_hold" in stack for stack in folded(answer.read().decode()))
        client.close()
        assert server.sampler.wait(HANGS_S) == 0, server.sampler.stderr.read()


def test_a_signal_ends_it_with_what_is_under_way(world):
    """Also if its helpers get the signal first."""
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        client = server.connect()
        client.request("GET", "/debug/fgprof?seconds=300&format=folded")
        wait_for(lambda: server.metric("fgprof_requests_in_progress") == 1, "the request")
        signal_service(server.sampler.pid, signal.SIGTERM)
        answer = client.getresponse()
        assert answer.status == 200 and folded(answer.read().decode()) is not None
        client.close()
        assert server.sampler.wait(HANGS_S) == 0
        assert target.poll() is None, "the program was ended, too"


def test_a_signal_leaves_slow_clients_time(world):
    """A page that is still being sent is sent to its end."""
    path = world.path("socket")
    # The kernel keeps less for a Unix socket than a page has.
    with world.running("workers", 60, 0, 1000) as one, world.running("workers", 60, 0, 1000) as two, \
            serving(world, "-p", f"{one.pid},{two.pid}", listen="unix:" + path) as server, \
            socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        with client.makefile("rb", buffering=0) as answer:
            client.sendall(b"GET /debug/fgprof?last=60s&format=html HTTP/1.1\r\nHost: localhost\r\n"
                           b"Connection: close\r\n\r\n")
            begin = answer.read(17)
            assert begin == b"HTTP/1.1 200 OK\r\n"
            server.sampler.send_signal(signal.SIGTERM)
            time.sleep(3)  # it waits for 5 s
            head, body = (begin + answer.readall()).split(b"\r\n\r\n", 1)
        wanted = int(re.search(rb"(?i)^content-length: (\d+)", head, re.M)[1])
        assert len(body) == wanted > 300_000, (len(body), wanted)
        assert server.sampler.wait(HANGS_S) == 0


def test_waiting_for_the_next_process_of_a_name(world):
    name = "serve-me"
    program = world.path(name)
    shutil.copy(world.fixture("holders"), program)
    with world.running("holders", 60, program=program) as target, \
            serving(world, "--pgrep", f"^{name}$", "--wait") as server:
        assert server.what == f"{name} ({target.pid})", server.said
        before = server.metric("fgprof_samples_total")
        target.kill()
        target.wait()
        wait_for(lambda: not server.metric("fgprof_up"), "the end")
        server.fails("/debug/fgprof?seconds=1", 503, "no process is sampled now")
        server.fails("/debug/pprof/goroutine", 503, "no process")
        assert "no process now" in server.text("/")
        assert server.metric("fgprof_samples_total") >= before, "a counter that goes back"
        with world.running("holders", 60, program=program) as second:
            assert f"{name} ({second.pid})" in server.next_line()
            assert "outer_hold" in server.text("/debug/fgprof?seconds=1&format=folded")
        end(server.sampler)


def test_addresses(world):
    with world.running("holders", 60) as target:
        for address, why in (("0.0.0.0:0", "--allow-remote"), ("[::]:0", "--allow-remote"), ("6060", "HOST:PORT"),
                             ("::1:6060", "HOST:PORT"), ("127.0.0.1:http", "0 to 65535"),
                             ("127.0.0.1:99999", "0 to 65535"), ("127.0.0.1:", "0 to 65535"),
                             ("no.such.host.invalid:1", ""), ("unix:" + "x" * 108, "107 bytes"),
                             ("unix:" + world.path("none/socket"), "No such file"), ("", "HOST:PORT")):
            done = world.fgprof("serve", "-p", target.pid, "--listen", address, timeout=20)
            assert done.returncode in (1, 2) and why in done.stderr, (address, done)
            assert done.stderr.count("\n") == 1, done.stderr
        done = world.fgprof("serve", "-p", target.pid, "--wait")
        assert done.returncode == 2 and "--wait has no name to wait for" in done.stderr, done
        done = world.fgprof("serve", "-p", target.pid, "--pgrep", "x", "--wait")
        assert done.returncode == 2 and "leave out other processes" in done.stderr, done
        for words, why in ((("--keep", "0"), "bad time to keep"), (("--keep", "1s", "--keep-memory", 0), "bad amount of memory")):
            done = world.fgprof("serve", "-p", target.pid, *words)
            assert done.returncode == 2 and why in done.stderr, done.stderr
        done = world.fgprof("serve", "-p", target.pid, "--max-seconds", 0)
        assert done.returncode == 2 and "1 to 86400" in done.stderr, done
        token = world.path("token")
        open(token, "w").write("secret\n")
        with serving(world, "-p", target.pid, "--allow-remote", "--token-file", token, listen="0.0.0.0:0") as server:
            for host in "192.0.2.1:6060", socket.gethostname(), "name.of.a.proxy.example":
                assert server.ask("/metrics", Host=host, Authorization="Bearer secret")[0] == 200, host
                assert server.ask("/metrics", Host=host, Authorization="Bearer wrong")[0] == 401, host
            done = world.fgprof("serve", "-p", target.pid, "--listen", f"127.0.0.1:{server.port}")
            assert done.returncode == 1 and "in use" in done.stderr, done


def test_a_port_that_is_not_permitted(world):
    if int(open("/proc/sys/net/ipv4/ip_unprivileged_port_start").read()) < 2:
        raise Skip("everybody may have each port here")
    user = {} if os.geteuid() else {"user": 65534, "group": 65534, "extra_groups": []}
    with world.running("holders", 60, **user) as target:
        done = world.fgprof("serve", "-p", target.pid, "--listen", "127.0.0.1:1", **user)
    assert done.returncode == 1, done
    assert done.stderr == ("fgprof-c: can't listen at 127.0.0.1:1: permission denied: give a port from 1024 on, or run "
                           "with CAP_NET_BIND_SERVICE\n"), done.stderr


def test_a_unix_socket(world):
    need("curl")
    path = world.path("socket")
    with world.running("holders", 60) as target:
        with serving(world, "-p", target.pid, listen="unix:" + path) as server:
            assert server.path == path and os.stat(path).st_mode & 0o777 == 0o600, oct(os.stat(path).st_mode)
            metrics = tool("curl", "-sf", "--unix-socket", path, "http://any/metrics")
            assert "\nfgprof_up 1\n" in metrics
            done = world.fgprof("serve", "-p", target.pid, "--listen", "unix:" + path)
            assert done.returncode == 1 and "in use" in done.stderr, done
            server.sampler.kill()
            server.sampler.wait()
        # It was killed, and left its socket behind.
        with serving(world, "-p", target.pid, listen="unix:" + path) as server:
            end(server.sampler)
        assert not os.path.exists(path)
        open(path, "w").write("precious")
        done = world.fgprof("serve", "-p", target.pid, "--listen", "unix:" + path)
        assert done.returncode == 1 and open(path).read() == "precious", done


@users_build
def test_prometheus_scrapes_the_metrics(world):
    need("promtool", "prometheus")
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        check = subprocess.run(["promtool", "check", "metrics"], input=server.text("/metrics"), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANGS_S)
        assert check.returncode == 0 and not check.stdout, check
        configuration = world.path("prometheus.yml")
        open(configuration, "w").write(
            "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n"
            f"scrape_configs: [{{job_name: fgprof, static_configs: [{{targets: ['127.0.0.1:{server.port}']}}]}}]\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        prometheus = subprocess.Popen(
            ["prometheus", "--config.file", configuration, "--storage.tsdb.path", world.path("tsdb"),
             "--web.listen-address", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def ticks():
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGS_S)
                    connection.request("GET", "/api/v1/query?query=fgprof_ticks_total")
                    found = re.search(rb'"value":\[[^,]+,"(\d+)"\]', connection.getresponse().read())
                    return found and int(found[1])
                except OSError:
                    return None
            wait_for(ticks, "a scrape")
            first = ticks()
            wait_for(lambda: ticks() > first, "the next scrape")
        finally:
            prometheus.kill()
            prometheus.wait()


# What the frame of the page shows; null while it is the browser's page about an error.
FRAME = "document.getElementById('last').contentDocument"
HAS_GRAPH = f"return !!{FRAME}?.querySelector('#graph canvas')"


def test_the_page(world):
    with world.running("holders", 300) as target, serving(world, "-p", target.pid) as server:
        browser = Browser()
        try:
            browser.open(server.url)
            assert f"fixture-holders ({target.pid})" in browser.text("h1")
            # The last minute is on it, and reloads itself with the view that was chosen.
            minute = "document.getElementById('last').contentWindow"
            wait_for(lambda: browser.run(f"return !!{minute}.document.querySelector('#graph canvas')"),
                     "the flame graph")
            browser.run(f"{minute}.location.hash = 'search=lock'; {minute}.isOld = true")
            wait_for(lambda: browser.run(f"return !{minute}.isOld && !!{minute}.document.querySelector("
                                         "'#graph canvas')"), "the page anew")
            assert browser.run(f"return {minute}.location.hash") == "#search=lock"
            browser.run("document.getElementById('now').open = true")
            wait_for(lambda: "take  [fixture-holders]" in browser.text("#top"), "the table")
            assert server.url in browser.text("#url") + "/"
            browser.run("document.querySelector('nav a').click()")
            wait_for(lambda: browser.run("return !!document.querySelector('#graph canvas')"), "the flame graph")
            assert not browser.console(), browser.console()
            browser.open(server.url)
            wait_for(lambda: browser.run(HAS_GRAPH), "the flame graph")
            check_frame_in_use(browser)
            check_restart(world, browser, target, server)
        finally:
            browser.close()


def check_frame_in_use(browser):
    """Nothing is reloaded while the user works in the frame."""
    browser.run("document.getElementById('last').focus()")
    assert browser.run("return document.activeElement.id") == "last"
    browser.run(f"{FRAME}.isOld = true; reload()")
    # A reload that had begun would have ended by the time that the same page is fetched three times.
    browser.run("return (async () => { for (let i = 0; i < 3; i++)"
                " await (await fetch(document.getElementById('last').src)).text(); })()")
    assert browser.run(f"return {FRAME}.isOld === true"), "reloaded"
    browser.run("document.getElementById('live').focus(); reload()")
    wait_for(lambda: browser.run(f"return !{FRAME}?.isOld") and browser.run(HAS_GRAPH), "the page anew")


def check_restart(world, browser, target, server):
    """The page finds the next server by itself, and still has the view that was chosen."""
    browser.run(f"{FRAME}.isOld = true; {FRAME}.location.hash = 'search=lock'")
    wait_for(lambda: browser.run(f"return !{FRAME}?.isOld") and browser.run(HAS_GRAPH), "the page anew")
    end(server.sampler)
    browser.run("reload()")
    wait_for(lambda: browser.run(f"return !{FRAME}"), "the browser's page about an error")
    with serving(world, "-p", target.pid, listen=f"127.0.0.1:{server.port}"):
        wait_for(lambda: browser.run(HAS_GRAPH), "the flame graph by the next server")
        assert browser.run(f"return {FRAME}.location.hash") == "#search=lock"


def test_pages_ask_for_what_is_kept(world):
    """Their links to earlier times are answered, however little is kept."""
    with world.running("holders", 60) as target:
        for keep, last in (("1s", "1s"), ("0.1s", "0.1s"), ("2m", "60s")):
            with serving(world, "-p", target.pid, "--keep", keep) as server:
                for path, count in ("/", 3), ("/debug/pprof/", 1):
                    links = [html.unescape(link) for link in
                             re.findall(r'(?:src|href)="(/debug/fgprof\?last=[^"]+)"', server.text(path))]
                    assert len(links) == count and all(f"last={last}&" in link for link in links), links
                    for link in links:
                        server.text(link)
                assert "{{" not in server.text("/")


@users_build
def test_memory_stays_flat(world):
    """For a minute the moments of the last minute become more; then each replaces another."""
    with world.running("workers", 200, 0, 300) as target, \
            serving(world, "-p", target.pid, "-F", 19) as server:
        wait_until_asleep(target.pid)

        def resident_kib():
            return int(status_field(server.sampler.pid, "VmRSS").split()[0])
        wait_for(lambda: server.metric("fgprof_ticks_total") >= 66 * 19, "a minute", 600)
        before = resident_kib()
        wait_for(lambda: server.metric("fgprof_ticks_total") >= 82 * 19, "three moments more", 600)
        assert resident_kib() - before < 512, (before, resident_kib())
