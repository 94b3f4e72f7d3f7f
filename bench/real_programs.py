"""Real programs at work: each function starts one on a stage, and returns the processes to look
at.

Servers listen on loopback only, in a directory of their own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

LOAD_SECONDS = 60


class Missing(Exception):
    """A program that is not installed."""


def need(*names):
    for name in names:
        if not shutil.which(name) and not os.path.exists(name):
            raise Missing(name)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Stage:
    """A directory and the processes that were started in it."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="fgprof-bench-")
        os.chmod(self.directory, 0o755)
        self.processes = []

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def start(self, *command, **options):
        options.setdefault("stdout", subprocess.DEVNULL)
        options.setdefault("stderr", subprocess.DEVNULL)
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(list(map(str, command)), cwd=self.directory, **options)
        self.processes.append(process)
        return process

    def await_port(self, port):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.05)
        raise TimeoutError(f"nothing listens on port {port}")

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def as_user(name):
    """Servers that refuse to run as root."""
    return {"user": name} if os.getuid() == 0 else {}


def redis(stage):
    need("redis-server", "redis-benchmark")
    port = free_port()
    server = stage.start("redis-server", "--port", port, "--save", "", "--bind", "127.0.0.1")
    stage.await_port(port)
    stage.start("redis-benchmark", "-p", port, "-c", 20, "-t", "get,set,lpush", "-n", 100000000, "-q")
    return [server.pid]


def nginx(stage):
    need("nginx", "wrk")
    port = free_port()
    config = stage.write("nginx.conf", f"""
daemon off; pid {stage.path("pid")}; error_log /dev/null; worker_processes 1;
events {{}}
http {{ access_log {stage.path("log")}; server {{ listen 127.0.0.1:{port}; root {stage.directory}; }} }}
""")
    stage.write("index.html", "hello " * 200)
    server = stage.start("nginx", "-c", config, "-p", stage.directory)
    stage.await_port(port)
    stage.start("wrk", "-t1", "-c8", f"-d{LOAD_SECONDS}", f"http://127.0.0.1:{port}/")
    return [int(subprocess.check_output(["pgrep", "-P", str(server.pid)]).split()[0])]


def memcached(stage):
    need("memcached")
    port = free_port()
    user = ["-u", "nobody"] if os.getuid() == 0 else []
    server = stage.start("memcached", "-l", "127.0.0.1", "-p", port, "-U", 0, *user)
    stage.await_port(port)
    stage.start("python3", "-c", f"""
import socket, time
end = time.time() + {LOAD_SECONDS}
sockets = [socket.create_connection(("127.0.0.1", {port})) for _ in range(8)]
while time.time() < end:
    for s in sockets: s.sendall(b"set key 0 0 5\\r\nhello\\r\nget key\\r\n" * 50)
    for s in sockets: s.recv(65536)
""")
    return [server.pid]


def postgres(stage, *load):
    """`load`: options of pgbench, instead of two clients without think time."""
    binaries = "/usr/lib/postgresql/15/bin/"
    need(binaries + "postgres", binaries + "pgbench")
    user = as_user("postgres")
    data, port = stage.path("data"), free_port()
    if user:
        shutil.chown(stage.directory, "postgres")
    subprocess.run([binaries + "initdb", "-D", data, "-A", "trust", "-U", "bench"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=stage.directory, **user)
    server = stage.start(binaries + "postgres", "-D", data, "-p", port, "-k", stage.directory,
                         "-h", "127.0.0.1", **user)
    stage.await_port(port)
    client = ["-h", "127.0.0.1", "-p", str(port), "-U", "bench", "postgres"]
    time.sleep(1)
    subprocess.run([binaries + "pgbench", "-i", "-s", "1", *client], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stage.start(binaries + "pgbench", *(load or ("-c", 2, "-T", LOAD_SECONDS)), *client)
    time.sleep(1)
    children = map(int, subprocess.check_output(["pgrep", "-P", str(server.pid)]).split())
    # Backends first: they do the work.
    return sorted(children, key=lambda pid: b"127.0.0.1" not in
                  open(f"/proc/{pid}/cmdline", "rb").read()) + [server.pid]


def mariadbd(stage, *options, clients=4):
    need("mariadbd", "mariadb-install-db", "mariadb-slap")
    user = as_user("mysql")
    data, port = stage.path("data"), free_port()
    if user:
        shutil.chown(stage.directory, "mysql")
    subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}",
                    "--auth-root-authentication-method=normal"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user)
    server = stage.start("mariadbd", "--no-defaults", f"--datadir={data}", f"--port={port}",
                         "--bind-address=127.0.0.1", f"--socket={stage.path('socket')}",
                         f"--pid-file={stage.path('pid')}", *options, **user)
    stage.await_port(port)
    stage.start("mariadb-slap", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", f"--concurrency={clients}",
                "--auto-generate-sql", "--auto-generate-sql-load-type=mixed", "--iterations=100000",
                "--number-of-queries=2000")
    return [server.pid]


def node(stage):
    need("node")
    script = stage.write("busy.js", f"""
const end = Date.now() + {LOAD_SECONDS} * 1000;
function work(depth) {{ return depth ? work(depth - 1) + 1 : JSON.stringify({{a: [1, 2, 3]}}).length; }}
(function tick() {{
  for (let i = 0; i < 20000; i++) work(i % 30);
  [3, 1, 2].sort((a, b) => a - b); require("crypto").createHash("sha1").update("x".repeat(9999)).digest();
  if (Date.now() < end) setTimeout(tick, 1);
}})();
""")
    return [stage.start("node", script).pid]


def python3(stage):
    need("/usr/bin/python3")
    script = stage.write("busy.py", f"""
import json, re, threading, time
end = time.time() + {LOAD_SECONDS}
def deep(n): return n if n < 2 else deep(n - 1) + deep(n - 2)
def work():
    while time.time() < end:
        deep(12); re.sub("(a|b)*c", "x", "abab" * 50); json.loads(json.dumps([1, 2, 3] * 30))
        sorted(range(1000), key=lambda x: -x); time.sleep(0.001)
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
""")
    return [stage.start("/usr/bin/python3", script).pid]


def rust(stage):
    need("rustc")
    source = stage.write("busy.rs", f"""
use std::{{collections::HashMap, thread, time::{{Duration, Instant}}}};
fn work(end: Instant) -> u64 {{
    let mut sum = 0;
    while Instant::now() < end {{
        let mut map = HashMap::new();
        for i in 0..2000u64 {{ map.insert(format!("key{{}}", i % 100), i); }}
        let mut values: Vec<_> = map.into_iter().collect();
        values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sum += values[0].1;
        thread::sleep(Duration::from_micros(300));
    }}
    sum
}}
fn main() {{
    let end = Instant::now() + Duration::from_secs({LOAD_SECONDS});
    let threads: Vec<_> = (0..2).map(|_| thread::spawn(move || work(end))).collect();
    for t in threads {{ println!("{{}}", t.join().unwrap()); }}
}}
""")
    subprocess.run(["rustc", "-O", source, "-o", stage.path("busy")], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return [stage.start(stage.path("busy")).pid]


def static_c(stage):
    need("gcc")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/fixtures/states.c")
    subprocess.run(["gcc", "-g", "-O2", "-static", "-D_GNU_SOURCE", source, "-o",
                    stage.path("states"), "-pthread"], check=True)
    return [stage.start(stage.path("states"), LOAD_SECONDS).pid]


def python3_c(stage):
    """C code of Python's own library, of OpenSSL and of zlib at work."""
    need("/usr/bin/python3")
    script = stage.write("busy.py", f"""
import hashlib, json, re, sqlite3, time, zlib
end = time.time() + {LOAD_SECONDS}
text = "some words, and others " * 2000
while time.time() < end:
    hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 2000)
    zlib.decompress(zlib.compress(text.encode(), 6))
    re.findall(r"(\\w+)ers", text); json.loads(json.dumps([text.split()] * 3))
    base = sqlite3.connect(":memory:")
    base.execute("create table t (a integer, b text)")
    base.executemany("insert into t values (?, ?)", ((i * 7919 % 1000, str(i)) for i in range(2000)))
    base.execute("select b from t order by a, b").fetchall()
""")
    return [stage.start("/usr/bin/python3", script).pid]


def java(stage):
    need("java", "javac")
    source = stage.write("Busy.java", f"""
import java.util.*;
public class Busy {{
  static int deep(int n) {{ return n < 2 ? n : deep(n - 1) + deep(n - 2); }}
  static void work() {{
    long end = System.nanoTime() + {LOAD_SECONDS}L * 1000000000L;
    while (System.nanoTime() < end) {{
      Map<String, Integer> map = new HashMap<>();
      for (int i = 0; i < 2000; i++) map.merge("key" + i % 100, deep(i % 15), Integer::sum);
      List<String> keys = new ArrayList<>(map.keySet()); Collections.sort(keys);
      try {{ Thread.sleep(1); }} catch (InterruptedException e) {{ return; }}
    }}
  }}
  public static void main(String[] words) {{
    for (int i = 0; i < 2; i++) new Thread(Busy::work).start();
  }}
}}
""")
    subprocess.run(["javac", source], check=True, cwd=stage.directory)
    return [stage.start("java", "-cp", stage.directory, "Busy").pid]


def git(stage):
    """git log -p, on a repository made for the purpose."""
    need("git")
    history = []
    for number in range(16000):
        text = "".join(f"line {(i * 7919 + i // 50 * number) % 997}\n" for i in range(2000))
        history.append(f"commit refs/heads/main\ncommitter B <b@b> {number} +0000\ndata 1\nx\n"
                       f"M 644 inline file{number % 7}\ndata {len(text)}\n{text}\n")
    repository = stage.path("repository")
    subprocess.run(["git", "init", "-q", "-b", "main", repository], check=True)
    subprocess.run(["git", "-C", repository, "fast-import", "--quiet"], check=True,
                   input="".join(history).encode())
    log = stage.start("git", "-C", repository, "log", "-p", "--patience",
                      "--find-copies-harder", "-C", "-B", "--word-diff", "main")
    return [log.pid]


def gcc(stage):
    """The compiler proper, on a large file."""
    need("gcc")
    functions = "".join(f"int f{i}(int *a, int n) {{ int s = {i}; for (int i = 0; i < n; i++) "
                        f"if (a[i] % {i + 3} == 1) s += a[i] * {i} + s / (a[i] | 1); "
                        f"else s ^= a[n - i - 1] << {i % 7}; return s; }}\n" for i in range(20000))
    source = stage.write("large.c", functions)
    compiler = subprocess.check_output(["gcc", "-print-prog-name=cc1"], text=True).strip()
    return [stage.start(compiler, "-quiet", "-O2", source, "-o", "/dev/null").pid]


def go(stage):
    need("go")
    stage.write("go.mod", "module busy\n\ngo 1.19\n")
    stage.write("busy.go", f"""package main

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

func work(end time.Time, done chan int) {{
	sum := 0
	for time.Now().Before(end) {{
		counts := map[string]int{{}}
		for i := 0; i < 2000; i++ {{
			counts[fmt.Sprintf("key%d", i%100)] += i
		}}
		keys := []string{{}}
		for key := range counts {{
			keys = append(keys, key)
		}}
		sort.Strings(keys)
		sum += len(strings.Join(keys, ","))
		time.Sleep(300 * time.Microsecond)
	}}
	done <- sum
}}

func main() {{
	end, done := time.Now().Add({LOAD_SECONDS}*time.Second), make(chan int)
	for i := 0; i < 2; i++ {{
		go work(end, done)
	}}
	fmt.Println(<-done + <-done)
}}
""")
    subprocess.run(["go", "build", "-o", stage.path("busy")], check=True, cwd=stage.directory)
    return [stage.start(stage.path("busy")).pid]


def ffmpeg(stage):
    """Encoding by libx264: hand-written code without call frame information."""
    need("ffmpeg")
    return [stage.start("ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i",
                        "testsrc2=size=1280x720:rate=30", "-t", 600, "-c:v", "libx264", "-preset",
                        "slower", "-f", "null", "-").pid]


def chromium(stage):
    """Idle: its threads sleep in calls that must not be stopped."""
    need("chromium")
    browser = stage.start("chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
                          f"--user-data-dir={stage.path('profile')}", "about:blank",
                          start_new_session=True)
    time.sleep(5)
    return list(map(int, subprocess.check_output(["pgrep", "-s", str(browser.pid)]).split()))


def rustc(stage):
    """The compiler, on a large file."""
    need("rustc")
    functions = "".join(f"pub fn f{i}(a: &[u64]) -> u64 {{ let mut m = std::collections::HashMap::new(); "
                        f"for (i, x) in a.iter().enumerate() {{ m.insert(x % {i + 3}, i as u64); }} "
                        f"m.values().map(|v| v ^ {i}).sum() }}\n" for i in range(3000))
    source = stage.write("large.rs", functions)
    rustup = subprocess.run(["rustup", "which", "rustc"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip() \
        if shutil.which("rustup") else ""
    return [stage.start(rustup or "rustc", "-O", "--crate-type=lib", source, "-o",
                        stage.path("large")).pid]


PROGRAMS = {
    "redis": redis, "nginx": nginx, "memcached": memcached, "postgres": postgres,
    "mariadbd": mariadbd, "node": node, "python3": python3, "python3, C extensions": python3_c,
    "java": java, "git log -p": git, "gcc": gcc, "Rust": rust, "Go": go, "C, static": static_c,
    "ffmpeg": ffmpeg, "chromium": chromium, "rustc": rustc,
}
