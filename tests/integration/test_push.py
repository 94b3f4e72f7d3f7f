"""Profiles that are pushed to servers: what the servers get, and what happens if they fail."""

import contextlib
import email.parser
import email.policy
import glob
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading

from harness import HANGS_S, PUSH, Skip, all_children_of, need, tool, users_build, wait_for
from receiver import RESET, Otlp, Pprof, certificate, decode_push, receiving, total
from servers import free_port
from test_reader import status_of
from test_serve import Server

PUSH_PATH = "/push.v1.PusherService/Push"
OTLP_PATH = "/v1development/profiles"


def without(*names, **changes):
    """The environment without these variables, and without those that redirect libcurl."""
    others = {"curl_ca_bundle", "ssl_cert_file", "http_proxy", "https_proxy", "all_proxy"}
    return {name: value for name, value in os.environ.items()
            if name not in names and name.lower() not in others} | changes


class Pusher(Server):
    """A serving profiler that pushes."""

    def __init__(self, world, *arguments, every="200ms", environment=None):
        super().__init__(world, "--push-every", every, "--push-spool", world.path("spool"), *arguments,
                         env=without(**(environment or {})))
        self.told = self.next_line()
        assert self.told.startswith("fgprof-c: pushing every "), self.told

    def counts(self, name):
        """The sum over all servers."""
        rows = re.findall(rf"^fgprof_push_?{name}(?:\{{[^}}]*\}})? (\d+)$", self.text("/metrics"), re.M)
        assert rows, name
        return sum(map(int, rows))

    def drops(self, reason):
        return sum(map(int, re.findall(rf'^fgprof_push_drops_total\{{.*reason="{reason}"\}} (\d+)$',
                                       self.text("/metrics"), re.M)))

    def stop(self):
        """Ends it; returns what it has printed since the ready lines."""
        self.sampler.send_signal(signal.SIGTERM)
        said = self.sampler.communicate(timeout=HANGS_S)[1]
        assert self.sampler.returncode == 0, (self.sampler.returncode, said)
        return said


@contextlib.contextmanager
def pushing(world, *arguments, **options):
    pusher = Pusher(world, *arguments, **options)
    try:
        yield pusher
    finally:
        if pusher.sampler.poll() is None:
            pusher.sampler.kill()
        pusher.sampler.communicate()


def series_of(world, request):
    """{the profile's name: (labels, Pprof)}"""
    series = {}
    for row in decode_push(world, request.body)["series"]:
        labels = {label["name"][0].decode(): label["value"][0].decode() for label in row["labels"]}
        assert len(labels) == len(row["labels"]), row["labels"]
        sample, = row["samples"]
        assert re.fullmatch(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
                            sample["ID"][0]), sample["ID"]
        assert labels["__name__"] not in series
        series[labels["__name__"]] = labels, Pprof(sample["raw_profile"][0])
    return series


def follow_each_other(parts):
    """Whether consecutive profiles share no time and leave none out."""
    for one, other in zip(parts, parts[1:]):
        assert one.begin_ns + one.length_ns == other.begin_ns, (one.begin_ns, one.length_ns, other.begin_ns)


def test_pyroscope_gets_each_part(world):
    with receiving() as receiver, world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", "pyroscope=" + receiver.url, "--tag", "region=eu",
                    "--tag", "app.tier=é", every="1s") as pusher:
        assert receiver.url + PUSH_PATH in pusher.told, pusher.told
        receiver.wait(3)
        assert pusher.stop() == ""
        requests = receiver.wait(4)  # the last part, too
        for request in requests:
            assert request.path == PUSH_PATH and not request.query, request
            assert request.headers["Content-Type"] == "application/proto", request.headers
            assert request.headers["Connect-Protocol-Version"] == "1", request.headers
            assert "Authorization" not in request.headers, request.headers
        parts = [series_of(world, request) for request in requests]
        for part in parts:
            assert set(part) == {"wall", "process_cpu", "off_cpu"}, part
            for name, (labels, profile) in part.items():
                expected = {"__name__": name, "__delta__": "false", "pyroscope_spy": "fgprof-c",
                            "service_name": "phases", "host_name": socket.gethostname(),
                            "process_executable_name": "phases", "process_pid": str(target.pid),
                            "region": "eu", "app_tier": "é"}
                labels.pop("container_id", None)
                assert labels == expected, labels
                kind = ({"process_cpu": "cpu"}.get(name, name), "nanoseconds")
                assert profile.types == [kind] and profile.period_type == kind, (name, profile.types)
                assert not any(labels for _, _, labels in profile.samples), profile.samples
            wall, cpu, off_cpu = (part[name][1] for name in ("wall", "process_cpu", "off_cpu"))
            assert wall.total() == cpu.total() + off_cpu.total()
        walls, cpus = ([part[name][1] for part in parts] for name in ("wall", "process_cpu"))
        follow_each_other(walls)
        cpu_ns = sum(cpu.total() for cpu in cpus)
        assert sum(cpu.total(function="in_first") for cpu in cpus) > 0.95 * cpu_ns > 0
        # Two threads all the time, one of which computes.
        length_ns = sum(wall.length_ns for wall in walls)
        assert 0.97 < sum(wall.total() for wall in walls) / (2 * length_ns) < 1.03
        assert 0.95 < sum(wall.total(function="in_idle") for wall in walls) / length_ns < 1.03
        # On the grid, unless the machine was held up each time.
        late = [(wall.begin_ns + wall.length_ns) % 10**9 for wall in walls[:-1]]
        assert min(late) < 250_000_000, late


def form_of(request):
    """{the name of a part: (its file name, its content)}"""
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + request.body)
    return {part.get_param("name", header="Content-Disposition"): (part.get_filename(), part.get_payload(decode=True))
            for part in message.iter_parts()}


def test_pyroscope_classic_ingest(world):
    """As the server's handler reads it: the body is a profile with format=pprof, and a form without."""
    with receiving() as receiver, world.running("holders", 60) as target, \
            pushing(world, "-p", target.pid, "--push", f"pyroscope={receiver.url}/ingest/",
                    "--push-kinds", "wall,cpu,off_cpu,mutex,block", "--service", "my shop/x",
                    "--tag", "a=1,b={2}") as pusher:
        receiver.wait(10)
        assert pusher.stop() == ""
        kinds = {}
        for request in receiver.requests:
            assert request.path == "/ingest"
            name = re.fullmatch(r"my_shop/x\{(.*)\}", request.query["name"])
            labels = dict(pair.split("=") for pair in name[1].split(","))
            assert labels["process_pid"] == str(target.pid) and labels["a"] == "1_b__2_", labels
            assert 0 <= int(request.query["until"]) - int(request.query["from"]) < 100, request.query
            assert request.query["spyName"] == "fgprof-c"
            if request.headers["Content-Type"] == "application/octet-stream":
                assert request.query["format"] == "pprof", request.query
                profile = Pprof(request.body)
                if profile.types == [("contentions", "count"), ("delay", "nanoseconds")]:
                    kind = "mutex"
                else:
                    (kind, unit), = profile.types
                    assert unit == "nanoseconds"
            else:
                form = form_of(request)
                assert "format" not in request.query and set(form) == {"profile", "sample_type_config"}, form
                assert all(file for file, _ in form.values()), form
                config = json.loads(form["sample_type_config"][1])
                assert config["contentions"]["display-name"] == "block_count", config
                assert config["delay"]["display-name"] == "block_duration", config
                kind, profile = "block", Pprof(form["profile"][1])
                assert profile.types == [("contentions", "count"), ("delay", "nanoseconds")], profile.types
            assert not any(labels for _, _, labels in profile.samples), profile.samples
            kinds.setdefault(kind, []).append(profile)
        assert set(kinds) == {"wall", "cpu", "off_cpu", "mutex", "block"}, kinds.keys()
        for parts in kinds.values():
            follow_each_other(parts)
        assert sum(part.total(1, "inner_hold") for part in kinds["mutex"]) > 0
        assert sum(part.total(1, "pthread_mutex_lock") for part in kinds["block"]) > 0


def test_mutex_profiles_tell_how_long_was_waited(world):
    """The fixture knows for how long its threads waited."""
    with receiving() as receiver, world.running("holders", 4) as target, \
            pushing(world, "-p", target.pid, "-F", 199, "--push", "otlp=" + receiver.url, "--push-kinds",
                    "mutex") as pusher:
        said = pusher.sampler.communicate(timeout=HANGS_S)
        assert pusher.sampler.returncode == 0, said
        waited_us = sum(int(us) for us in re.findall(r"^\w+ \w+ (\d+)$", target.stdout.read(), re.M))
        delay_ns = begin_ns = length_ns = 0
        for request in receiver.requests:
            assert request.path == OTLP_PATH
            (attributes, profiles), = Otlp(world, request.body).resources
            assert set(profiles) == {("contentions", "count"), ("delay", "nanoseconds")}
            for profile in profiles.values():
                assert profile["period_type"] == ("mutex", "count") and profile["period"] == 1
            delay = profiles["delay", "nanoseconds"]
            assert not begin_ns or delay["begin_ns"] == begin_ns + length_ns, (delay, begin_ns)
            begin_ns, length_ns = delay["begin_ns"], delay["length_ns"]
            delay_ns += total(delay)
        assert waited_us > 3_000_000, waited_us
        assert 0.8 < delay_ns / 1e3 / waited_us < 1.1, (delay_ns, waited_us)


def test_otlp_gets_each_part(world):
    with receiving() as receiver, world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url, "--service", "shop",
                    "--tag", "deployment.environment=test") as pusher:
        receiver.wait(4)
        assert pusher.stop() == ""
        times = ("wall", "cpu", "off_cpu")
        parts, ids, cpu_ns, first_ns, idle_ns = [], set(), 0, 0, 0
        for request in receiver.requests:
            assert request.path == OTLP_PATH
            assert request.headers["Content-Type"] == "application/x-protobuf", request.headers
            assert request.headers["Content-Encoding"] == "gzip", request.headers
            (attributes, profiles), = Otlp(world, request.body).resources
            attributes.pop("container.id", None)
            assert attributes == {"service.name": "shop", "host.name": socket.gethostname(),
                                  "process.pid": target.pid, "process.executable.name": "phases",
                                  "deployment.environment": "test"}, attributes
            assert list(profiles) == [(name, "nanoseconds") for name in times]
            for kind, profile in profiles.items():
                assert profile["period_type"] == kind and profile["period"] == round(1e9 / 99), profile
                ids.add(profile["id"])
                for stack, value, attached in profile["samples"]:
                    assert value > 0 and set(attached) == {"thread.name"}, attached
                    assert stack[-1] not in ("in_first", "in_idle"), stack  # leaf first
            wall, cpu, off_cpu = (profiles[name, "nanoseconds"] for name in times)
            assert total(wall) == total(cpu) + total(off_cpu)
            cpu_ns += total(cpu)
            first_ns += total(cpu, "in_first")
            idle_ns += total(off_cpu, "in_idle")
            parts.append(wall)
        assert first_ns > 0.95 * cpu_ns > 0 and idle_ns > 0.9 * sum(part["length_ns"] for part in parts)
        assert len(ids) == 3 * len(parts)
        for one, other in zip(parts, parts[1:]):
            assert one["begin_ns"] + one["length_ns"] == other["begin_ns"]
        assert 0.9 < sum(map(total, parts)) / (2 * sum(part["length_ns"] for part in parts)) < 1.03


def test_no_two_otlp_profiles_have_the_same_id(world):
    """Block and mutex profiles have equal types of values."""
    with receiving() as receiver, world.running("holders", 4) as target, \
            pushing(world, "-p", target.pid, "-F", 199, "--push", "otlp=" + receiver.url, "--push-kinds",
                    "mutex,block") as pusher:
        assert pusher.sampler.wait(HANGS_S) == 0, pusher.sampler.stderr.read()
        profiles = [profile for request in receiver.requests
                    for _, profiles in Otlp(world, request.body).resources for profile in profiles.values()]
        assert {profile["period_type"] for profile in profiles} == {("mutex", "count"), ("block", "count")}
        assert len({profile["id"] for profile in profiles}) == len(profiles) >= 4


COLLECTOR = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{file: {{path: "{path}", format: proto, flush_interval: 100ms}}}}
service:
  pipelines: {{profiles: {{receivers: [otlp], exporters: [file]}}}}
  telemetry: {{metrics: {{level: none}}}}
"""


@contextlib.contextmanager
def collecting(world):
    """An OpenTelemetry Collector (tests/tools/otelcol.yaml): its URL, and a function that returns what it has
    received so far, each as an ExportProfilesServiceRequest."""
    if not shutil.which("otelcol-profiles"):
        raise Skip("no otelcol-profiles")
    path, port = world.path("collected"), free_port()
    with open(world.path("otelcol.yaml"), "w") as file:
        file.write(COLLECTOR.format(path=path, port=port))
    process = subprocess.Popen(["otelcol-profiles", "--config", world.path("otelcol.yaml"),
                                "--feature-gates=service.profilesSupport"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def taken():
        data, requests = open(path, "rb").read() if os.path.exists(path) else b"", []
        while len(data) >= 4 and len(data) >= 4 + (size := int.from_bytes(data[:4], "big")):
            requests.append(data[4:4 + size])
            data = data[4 + size:]
        return requests

    def is_ready():
        assert process.poll() is None, process.stderr.read()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    try:
        wait_for(is_ready, "the collector")
        yield f"http://127.0.0.1:{port}", taken
    finally:
        process.kill()
        process.communicate()


def has_samples(resource):
    return any(profile["samples"] for profile in resource[1].values())


def test_a_collector_takes_what_otlp_says(world):
    """Its output is what a plain server got, stack by stack."""
    with receiving() as receiver, collecting(world) as (collector, taken), \
            world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url, "--push", "otlp=" + collector,
                    "--service", "shop", "--push-kinds", "wall,cpu,mutex", every="500ms") as pusher:
        receiver.wait(4)
        assert pusher.stop() == ""
        sent = [Otlp(world, request.body).resources for request in receiver.requests]
        sent = [resources for resources in sent if any(map(has_samples, resources))]  # it drops the others
        wait_for(lambda: len(taken()) >= len(sent), "the collector's file")
        assert [Otlp(world, gzip.compress(body)).resources for body in taken()] == sent
        assert sum(total(profiles["wall", "nanoseconds"]) for (_, profiles), in sent) > 0


def test_go_tool_pprof_reads_what_pyroscope_gets(world):
    """It checks that all references are valid."""
    need("go")
    with receiving() as receiver, world.running("holders", 60) as one, world.running("holders", 60) as other, \
            pushing(world, "-p", f"{one.pid},{other.pid}", "--push", f"pyroscope={receiver.url}/ingest",
                    "--push-kinds", "wall,cpu,mutex") as pusher:
        receiver.wait(6)
        pusher.stop()
        for number, request in enumerate(receiver.requests):
            kept = world.path(f"{number}.pb.gz")
            open(kept, "wb").write(request.body)
            shown = tool("go", "tool", "pprof", "-tags", kept)
            assert not Pprof(request.body).samples or "process_pid: Total" in shown, shown


def test_processes_are_told_apart(world):
    """Each is a resource of OpenTelemetry's, and has labels in Pyroscope's samples, from which Pyroscope
    makes series."""
    with receiving() as receiver, world.running("holders", 60) as one, world.running("holders", 60) as other, \
            pushing(world, "-p", f"{one.pid},{other.pid}", "--push", f"otlp={receiver.url}",
                    "--push", f"pyroscope={receiver.url}", "--push-kinds", "wall") as pusher:
        receiver.wait(4)
        assert pusher.stop() == ""
        # The first and the last part may be short.
        requests = {request.path: request for request in sorted(receiver.requests, key=lambda one: len(one.body))}
        assert set(requests) == {OTLP_PATH, PUSH_PATH}
        resources = Otlp(world, requests[OTLP_PATH].body).resources
        assert sorted(attributes["process.pid"] for attributes, _ in resources) == sorted((one.pid, other.pid))
        assert all(total(profiles["wall", "nanoseconds"]) for _, profiles in resources)
        (labels, profile), = series_of(world, requests[PUSH_PATH]).values()
        assert "process_pid" not in labels, labels
        pids = {attached["process_pid"] for _, _, attached in profile.samples}
        assert pids == {str(one.pid), str(other.pid)}, pids
        assert all(attached["process_executable_name"] == "fixture-holders" and len(attached) == 2
                   for _, _, attached in profile.samples), profile.samples


def test_credentials(world):
    token = world.path("token")
    open(token, "w").write("first\n")

    def refuse_first(number, request):
        return 503 if "first" in request.headers["Authorization"] else 200
    with world.running("phases", 60, stdin=subprocess.PIPE) as target:
        with receiving(refuse_first) as receiver, \
                pushing(world, "-p", target.pid, "--push", "pyroscope=" + receiver.url, "--push-token-file",
                        token) as pusher:
            receiver.wait(1)
            open(token + "2", "w").write("second")
            os.rename(token + "2", token)  # as a secret of Kubernetes is renewed
            wait_for(lambda: pusher.counts("es_total"), "a push")
            assert receiver.requests[0].headers["Authorization"] == "Bearer first"
            assert receiver.requests[-1].headers["Authorization"] == "Bearer second"
        for environment, expected in (({"FGPROF_PUSH_TOKEN": "abc.def"}, "Bearer abc.def"),
                                      ({"FGPROF_PUSH_USER": "me", "FGPROF_PUSH_PASSWORD": "p:w"},
                                       "Basic bWU6cDp3")):
            with receiving() as receiver, pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url,
                                                  environment=environment) as pusher:
                assert receiver.wait(1)[0].headers["Authorization"] == expected
        user = world.path("user")
        open(user, "w").write("me:secret\n")
        with receiving() as receiver, pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url,
                                              "--push-user-file", user) as pusher:
            assert receiver.wait(1)[0].headers["Authorization"] == "Basic bWU6c2VjcmV0"
            # Two servers would get the same.
            done = world.fgprof("serve", "-p", target.pid, "--push", "otlp=" + receiver.url,
                                "--push", "otlp=http://127.0.0.1:1", "--push-user-file", user)
            assert done.returncode == 2 and "the same token, password or headers" in done.stderr, done
            for option, content in (("--push-token-file", ""), ("--push-token-file", "a\nb"),
                                    ("--push-user-file", "nobody"), ("--push-token-file", None)):
                path = world.path("odd")
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)
                if content is not None:
                    open(path, "w").write(content)
                done = world.fgprof("serve", "-p", target.pid, "--push", "otlp=" + receiver.url, option, path,
                                    "--listen", "none", "--push-spool", world.path("spool"))
                assert done.returncode == 1 and "can't be used" in done.stderr, done
            for environment in ({"FGPROF_PUSH_TOKEN": "a\rb"}, {"FGPROF_PUSH_USER": "a:b"}):
                done = world.fgprof("serve", "-p", target.pid, "--push", "otlp=" + receiver.url,
                                    "--listen", "none", env=without(**environment))
                assert done.returncode == 1 and "can't be used" in done.stderr, done
            done = world.fgprof("serve", "-p", target.pid, "--push", "otlp=" + receiver.url, "--push-user-file", user,
                                env=without(FGPROF_PUSH_TOKEN="x"))
            assert done.returncode == 2 and "a token and a password" in done.stderr, done


def test_headers(world):
    """One on each line, such as a tenant's."""
    path = world.path("headers")
    open(path, "w").write("X-Scope-OrgID: first\r\n\nX-Key:a b\n")

    def refuse_first(number, request):
        return 503 if request.headers["X-Scope-OrgID"] == "first" else 200
    with world.running("phases", 60, stdin=subprocess.PIPE) as target:
        arguments = "-p", target.pid, "--push"
        with receiving(refuse_first) as receiver, \
                pushing(world, *arguments, "pyroscope=" + receiver.url, "--push-header-file", path,
                        environment={"FGPROF_PUSH_TOKEN": "secret"}) as pusher:
            headers = receiver.wait(1)[0].headers
            assert headers["X-Scope-OrgID"] == "first" and headers["X-Key"] == "a b", headers
            assert headers["Authorization"] == "Bearer secret", headers
            open(path + "2", "w").write("X-Scope-OrgID: second")
            os.rename(path + "2", path)
            wait_for(lambda: pusher.counts("es_total"), "a push")
            headers = receiver.requests[-1].headers
            assert headers["X-Scope-OrgID"] == "second" and "X-Key" not in headers, headers
        with receiving() as receiver, \
                pushing(world, *arguments, "otlp=" + receiver.url,
                        environment={"FGPROF_PUSH_HEADERS": "X-Scope-OrgID: third\nAuthorization: Key x"}):
            headers = receiver.wait(1)[0].headers
            assert headers["X-Scope-OrgID"] == "third" and headers["Authorization"] == "Key x", headers
        for text, why in (("", "it is empty"), ("X-Scope-OrgID", "NAME: VALUE"), ("X-A: ", "NAME: VALUE"),
                          (": b", "NAME: VALUE"), ("X A: b", "NAME: VALUE"), ("X-A: b\tc", "control characters"),
                          ("X-A: b\ncontent-type: text/plain", "each request has anyway"),
                          ("authorization: Key x", "one too many")):
            open(path, "w").write(text)
            done = world.fgprof("serve", *arguments, "otlp=http://127.0.0.1:1", "--push-header-file", path,
                                "--listen", "none", "--push-spool", world.path("spool"),
                                env=without(FGPROF_PUSH_TOKEN="secret"))
            assert done.returncode == 1 and why in done.stderr and "can't be used" in done.stderr, (text, done)
            assert "text/plain" not in done.stderr and "Key x" not in done.stderr, done
        done = world.fgprof("serve", *arguments, "otlp=http://127.0.0.1:1", "--push", "otlp=http://127.0.0.1:2",
                            env=without(FGPROF_PUSH_HEADERS="X-Scope-OrgID: third"))
        assert done.returncode == 2 and "the same token, password or headers" in done.stderr, done


def test_what_a_run_before_could_not_send_is_sent_first(world):
    port = free_port()
    with world.running("phases", 60, stdin=subprocess.PIPE) as target:
        arguments = "-p", target.pid, "--push", f"pyroscope=http://127.0.0.1:{port}"
        with pushing(world, *arguments) as pusher:
            wait_for(lambda: pusher.counts("_spool_requests") >= 3, "requests in the spool")
            said = pusher.stop()
        assert re.fullmatch(rf"fgprof-c: can't push to http://127.0.0.1:{port}: .*: profiles wait in .*"
                            r"\(reported once\)\n", said), said
        files = glob.glob(world.path("spool") + "/0/*.push")
        assert len(files) >= 4, files
        for path in [world.path("spool"), world.path("spool") + "/0", *files]:
            assert os.stat(path).st_mode & 0o077 == 0, path
        with receiving(port=port) as receiver, pushing(world, *arguments) as pusher:
            receiver.wait(len(files) + 2)
            assert pusher.stop() == ""
            walls = [series_of(world, request)["wall"][1] for request in receiver.requests]
        assert not glob.glob(world.path("spool") + "/0/*.push")
        follow_each_other(walls[:len(files)])
        assert walls[len(files)].begin_ns > walls[len(files) - 1].begin_ns + walls[len(files) - 1].length_ns
        follow_each_other(walls[len(files):])


def test_profilers_share_a_spool(world):
    """Each profiler uses its own part, and what one has left behind is sent by another."""
    port = free_port()
    arguments = "--push", f"otlp=http://127.0.0.1:{port}"
    with world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            world.running("holders", 60) as other:
        with pushing(world, "-p", target.pid, *arguments) as one, pushing(world, "-p", other.pid, *arguments) as two:
            for pusher in one, two:
                wait_for(lambda pusher=pusher: pusher.counts("_spool_requests") >= 2, "requests in the spool")
            assert sorted(os.listdir(world.path("spool"))) == ["0", "1"]
            two.sampler.kill()
            two.sampler.communicate()
            one.stop()
        left = len(glob.glob(world.path("spool") + "/*/*.push"))
        with receiving(port=port) as receiver, pushing(world, "-p", target.pid, *arguments) as pusher:
            receiver.wait(left + 1)
            pusher.stop()
            names = {Otlp(world, request.body).resources[0][0]["service.name"] for request in receiver.requests}
        assert names == {"phases", "fixture-holders"}, names
        assert not glob.glob(world.path("spool") + "/*/*.push")


def check_accounts(world, port, arguments, accounts):
    with world.running("phases", 60, stdin=subprocess.PIPE) as target:
        with pushing(world, "-p", target.pid, *arguments, environment=accounts[0]) as pusher:
            wait_for(lambda: pusher.counts("_spool_requests") >= 2, "requests in the spool")
            pusher.stop()
        left = set(glob.glob(world.path("spool") + "/*/*.push"))
        with receiving(port=port) as receiver:
            with pushing(world, "-p", target.pid, *arguments, environment=accounts[1]) as pusher:
                receiver.wait(2)
                pusher.stop()
            assert set(glob.glob(world.path("spool") + "/*/*.push")) == left
            with pushing(world, "-p", target.pid, *arguments, environment=accounts[0]) as pusher:
                wait_for(lambda: not left & set(glob.glob(world.path("spool") + "/*/*.push")), "them to be sent")


def test_what_waits_is_not_sent_for_another_account(world):
    port = free_port()
    arguments = "--push", f"otlp=http://127.0.0.1:{port}"
    users = [{"FGPROF_PUSH_USER": user, "FGPROF_PUSH_PASSWORD": "x"} for user in ("one", "two")]
    tenants = [{"FGPROF_PUSH_HEADERS": f"X-Scope-OrgID: {tenant}"} for tenant in ("one", "two")]
    for accounts in users, tenants:
        check_accounts(world, port, arguments, accounts)


def test_the_spool_is_bounded(world):
    with world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", f"pyroscope=http://127.0.0.1:{free_port()}",
                    "--push-spool-size", "64K", every="100ms") as pusher:
        def is_over():
            with contextlib.suppress(FileNotFoundError):  # dropped just now
                size = sum(map(os.path.getsize, glob.glob(world.path("spool") + "/0/[0-9]*.push")))
                assert size <= 65536 + 16384, size  # one is written before it counts
            assert pusher.counts("_spool_bytes") <= 65536
            return pusher.drops("full") >= 3
        wait_for(lambda: glob.glob(world.path("spool") + "/0/[0-9]*.push"), "a request in the spool")
        oldest, = glob.glob(world.path("spool") + "/0/[0-9]*.push")[:1]
        wait_for(is_over, "a full spool", HANGS_S)
        assert not os.path.exists(oldest)
        said = pusher.stop()
        assert said.count("is full: the oldest profiles are dropped (reported once)\n") == 1, said
        assert said.count("\n") == 2, said


def test_what_a_server_refuses_is_dropped(world):
    """For statuses such as 413, and for redirections, which are not followed."""
    with receiving() as elsewhere:
        for status, headers in ((413, {}), (400, {}), (307, {"Location": elsewhere.url + PUSH_PATH})):
            with receiving(lambda number, request: (status, headers) if number < 2 else 200) as receiver, \
                    world.running("phases", 60, stdin=subprocess.PIPE) as target, \
                    pushing(world, "-p", target.pid, "--push", "pyroscope=" + receiver.url,
                            environment={"FGPROF_PUSH_TOKEN": "x"}) as pusher:
                receiver.wait(4)
                wait_for(lambda: pusher.counts("es_total") >= 2, "pushes")
                assert pusher.drops("refused") == 2 and not pusher.counts("_retries_total")
                said = pusher.stop()
                assert said == f"fgprof-c: {receiver.url} does not take a profile: HTTP status {status}: it is " \
                               "dropped (reported once)\n", said
                bodies = [request.body for request in receiver.requests]
                assert len(set(bodies)) == len(bodies)
        assert not elsewhere.requests


def field(number, value):
    """A field of a protocol buffer: a number below 128, or bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def test_what_a_server_takes_in_part_is_said(world):
    """The request is not sent again. Pyroscope's answers mean something else."""
    for partial, expected in (
            (field(1, 2) + field(2, b"too \x1b old"), r"has left out 2 profiles of a request: too \\x1b old"),
            (field(1, 1), "has left out 1 profile of a request"),
            (field(2, b"please use gzip"), "has taken a request, and says: please use gzip"),
            (b"", None), (b"\x08", None)):
        answer = 200, {"Content-Type": "application/x-protobuf"}, field(1, partial)
        with receiving(lambda number, request: answer) as receiver, world.running("holders", 60) as target, \
                pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url, "--push",
                        "pyroscope=" + receiver.url) as pusher:
            receiver.wait(6)
            said = pusher.stop()
            lines = f"fgprof-c: {receiver.url} {expected} \\(reported once\\)\n" if expected else ""
            assert re.fullmatch(lines, said), (lines, said)
            assert len(receiver.requests) == len({request.body for request in receiver.requests})


def test_what_fails_for_now_is_sent_again(world):
    for failure in 500, 503, 429, 401, RESET:
        with receiving(lambda number, request: failure if number < 2 else 200) as receiver, \
                world.running("phases", 60, stdin=subprocess.PIPE) as target, \
                pushing(world, "-p", target.pid, "--push", "pyroscope=" + receiver.url) as pusher:
            receiver.wait(5)
            wait_for(lambda: pusher.counts("es_total") >= 3, "pushes")
            assert pusher.counts("_retries_total") == 2
            said = pusher.stop()
            assert said.count("\n") == 1 and "can't push" in said and "(reported once)" in said, said
            bodies = [request.body for request in receiver.requests]
            assert bodies[0] == bodies[1] == bodies[2] and len(set(bodies)) == len(bodies) - 2
            follow_each_other([series_of(world, request)["wall"][1] for request in receiver.requests[2:]])


def test_a_request_that_always_fails_is_given_up(world):
    """It would block all others for ever."""
    first = []

    def answer(number, request):
        first[:] = first or [request.body]
        return 500 if request.body == first[0] else 200
    with receiving(answer) as receiver, world.running("phases", 120, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url, every="100ms") as pusher:
        wait_for(lambda: pusher.drops("refused") == 1, "the first request to be given up", HANGS_S)
        wait_for(lambda: pusher.counts("es_total") > 3, "pushes", HANGS_S)
        assert sum(request.body == first[0] for request in receiver.requests) == 10


def test_a_request_that_is_never_taken_lets_others_pass(world):
    """As one that a filter before the server does not let through. It is not given up."""
    first = []

    def answer(number, request):
        first[:] = first or [request.body]
        return 403 if request.body == first[0] else 200

    def is_first():
        return [request.body == first[0] for request in receiver.requests]
    with receiving(answer) as receiver, world.running("phases", 120, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url, every="100ms") as pusher:
        wait_for(lambda: pusher.counts("es_total") > 3, "later pushes", HANGS_S)
        tries = is_first().index(False)
        assert tries >= 10, tries
        wait_for(lambda: is_first().count(True) > tries, "another attempt", HANGS_S)
        assert not pusher.drops("refused") and not pusher.drops("full")
        said = pusher.stop()
        assert said.count("\n") == 1 and "HTTP status 403: profiles wait" in said, said
        left = [open(path, "rb").read() for path in glob.glob(world.path("spool") + "/0/*.push")]
        assert sum(content.endswith(first[0]) for content in left) == 1, len(left)


def test_retries_come_ever_later(world):
    with receiving(lambda number, request: 503) as receiver, \
            world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url, every="100ms"):
        requests = receiver.wait(6)
    # At least half of a wait of 100, 200 and 400 ms, and then of six times the time between pushes.
    gaps = [other.at - one.at for one, other in zip(requests, requests[1:])]
    for gap, wait_s in zip(gaps, (0.1, 0.2, 0.4, 0.6, 0.6)):
        assert gap >= wait_s / 2 * 0.95, gaps


def test_retry_after(world):
    with receiving(lambda number, request: (429, {"Retry-After": "3"}) if not number else 200) as receiver, \
            world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url, every="100ms"):
        first, second = receiver.wait(2)[:2]
        assert first.body == second.body and second.at - first.at >= 2.9, (first.at, second.at)


def test_a_server_that_does_not_answer_holds_up_nothing(world):
    release = threading.Event()

    def hang(number, request):
        release.wait(HANGS_S)
        return 200
    with receiving(hang) as slow, receiving() as quick, \
            world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", "otlp=" + slow.url, "--push", "otlp=" + quick.url) as pusher:
        slow.wait(1)
        quick.wait(len(quick.requests) + 4)
        assert len(slow.requests) == 1 and pusher.counts("_spool_requests") >= 3
        ticks = pusher.metric("fgprof_ticks_total")
        wait_for(lambda: pusher.metric("fgprof_ticks_total") > ticks + 20, "ticks")
        # Its end does not wait for ever, and what was not answered stays.
        said = pusher.stop()
        assert said.count("can't push to " + slow.url) == 1, said
        assert len(glob.glob(world.path("spool") + "/0/*.push")) >= 4
        release.set()


@users_build
def test_what_sends_has_no_privileges(world):
    """If it is killed, the request that it was sending is sent again."""
    release = threading.Event()

    def hang(number, request):
        release.wait(0 if number else HANGS_S)
        return 200
    with receiving(hang) as receiver, world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url) as pusher:
        receiver.wait(1)
        starter, = (child for child in all_children_of(pusher.sampler.pid) if status_of(child)["Name"] == PUSH)
        sender, = all_children_of(starter)
        status = status_of(sender)
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
        for name in "CapInh", "CapPrm", "CapEff":
            assert int(status[name], 16) == 0, status
        if not os.geteuid():
            assert set(status["Uid"].split()) == set(status["Gid"].split()) == {"65534"}, status
            assert not status["Groups"].strip(), status
        os.kill(sender, signal.SIGKILL)
        receiver.wait(2)
        release.set()
        first, second = receiver.requests[:2]
        assert first.body == second.body
        assert "the process that sends: " in pusher.stop()


def test_tls(world):
    path, context = certificate(world)
    with world.running("phases", 60, stdin=subprocess.PIPE) as target, receiving(context=context) as receiver:
        arguments = "-p", target.pid, "--push", "pyroscope=" + receiver.url
        with pushing(world, *arguments) as pusher:
            wait_for(lambda: pusher.counts("_retries_total"), "a refusal")
            assert "certificate" in pusher.stop()
        assert not receiver.requests
        for options in {"environment": {"CURL_CA_BUNDLE": path}}, {"environment": {"SSL_CERT_FILE": path}}:
            with pushing(world, *arguments, **options) as pusher:
                receiver.wait(len(receiver.requests) + 2)
                assert pusher.stop() == ""
        with pushing(world, *arguments, "--push-ca", path) as pusher:
            receiver.wait(len(receiver.requests) + 2)
            assert pusher.stop() == ""


def listening(pid):
    """The sockets at which the process waits for connections."""
    files = [os.readlink(path) for path in glob.glob(f"/proc/{pid}/fd/*") if os.path.islink(path)]
    rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/{pid}/net/{name}")]
    return [row for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in files]


def test_without_a_port(world):
    """An agent to which nobody can send requests."""
    with receiving() as receiver, world.running("holders", 60) as target:
        sampler = world.start("serve", "-p", target.pid, "--listen", "none", "--push", "otlp=" + receiver.url,
                              "--push-every", "200ms", "--push-spool", world.path("spool"), env=without())
        assert sampler.stderr.readline() == f"fgprof-c: taking profiles of fixture-holders ({target.pid})\n"
        receiver.wait(2)
        assert not listening(sampler.pid)
        sampler.send_signal(signal.SIGTERM)
        sampler.communicate(timeout=HANGS_S)
        assert sampler.returncode == 0


def test_a_spool_that_can_not_be_written(world):
    """Profiles still arrive, through memory."""
    port = free_port()
    with world.running("phases", 60, stdin=subprocess.PIPE) as target, \
            pushing(world, "-p", target.pid, "--push", f"otlp=http://127.0.0.1:{port}") as pusher:
        shutil.rmtree(world.path("spool"))
        wait_for(lambda: pusher.counts("_spool_requests") >= 3, "requests in memory")
        with receiving(port=port) as receiver:
            receiver.wait(3)
            said = pusher.stop()
        walls = [Otlp(world, request.body).resources[0][1]["wall", "nanoseconds"] for request in receiver.requests]
        for one, other in zip(walls, walls[1:]):
            assert one["begin_ns"] + one["length_ns"] == other["begin_ns"], (one, other)
        assert said.count("can't write to the spool") == 1 and said.count("(reported once)") == 2, said
    done = world.fgprof("serve", "-p", os.getpid(), "--listen", "none", "--push", "otlp=http://127.0.0.1:1",
                        "--push-spool", "/proc/version/spool")
    assert done.returncode == 1 and re.fullmatch(r"fgprof-c: can't keep a spool in /proc/version/spool: .*: give "
                                                 r"--push-spool DIR\n", done.stderr), done


def test_what_is_in_the_spool_need_not_be_trusted(world):
    port = free_port()
    with receiving() as receiver, world.running("phases", 60, stdin=subprocess.PIPE) as target:
        given = f"otlp={receiver.url}"
        head = f"fgprof-c push 1\nto {given}\ntype %s\ngzip 0\nquery %s\nbody %d\n\n"
        own = world.path("spool") + "/0"
        os.makedirs(own, mode=0o700)
        files = {
            "1-cut.push": head % ("application/x-protobuf", "", 5) + "four",
            "2-type.push": head % ("text/plain\r\nX-Evil: 1", "", 4) + "four",
            "3-query.push": head % ("application/x-protobuf", "a b", 4) + "four",
            "4-huge.push": head % ("application/x-protobuf", "", 10**18) + "four",
            "5-none.push": "",
            "6-other.push": head.replace(given, f"otlp=http://127.0.0.1:{port}") % ("application/x-protobuf", "", 4) + "four",
            "7-good.push": head % ("application/x-protobuf", "", 4) + "good",
        }
        for name, content in files.items():
            open(f"{own}/{name}", "w").write(content)
        os.symlink("/etc/passwd", f"{own}/8-link.push")
        with pushing(world, "-p", target.pid, "--push", given) as pusher:
            assert receiver.wait(2)[0].body == b"good"
            assert pusher.stop() == ""
        assert not any(request.body == b"four" for request in receiver.requests)
        # What is for another server stays for it.
        assert sorted(os.listdir(own)) == ["6-other.push", "8-link.push", "lock"], os.listdir(own)
        # A directory that others may read is left alone.
        os.chmod(own, 0o755)
        with pushing(world, "-p", target.pid, "--push", given):
            wait_for(lambda: os.path.exists(world.path("spool") + "/1/lock"), "another directory")


def test_bad_options(world):
    url = "otlp=http://127.0.0.1:1"
    for arguments, why in (
            (["--push", "http://x"], "give pyroscope=URL or otlp=URL"),
            (["--push", "zipkin=http://x"], "give pyroscope=URL or otlp=URL"),
            (["--push", "otlp="], "must begin with http:// or https://"),
            (["--push", "otlp=ftp://x"], "must begin with http:// or https://"),
            (["--push", "otlp=http://"], "give a host"),
            (["--push", "otlp=http://:80"], "give a host"),
            (["--push", "otlp=http://x:0"], "give a host"),
            (["--push", "otlp=http://x:y"], "give a host"),
            (["--push", "otlp=http://[::1"], "give a host"),
            (["--push", "otlp=http://x y/"], "give a host"),
            (["--push", "otlp=http://x/a b"], "without a query, a fragment or spaces"),
            (["--push", "otlp=http://x/?a=b"], "without a query, a fragment or spaces"),
            (["--push", "otlp=http://x/#a"], "without a query, a fragment or spaces"),
            (["--push", "otlp=http://x/\tA:b"], "without a query, a fragment or spaces"),
            (["--push", "otlp=http://me:secret@x/"], "others can read the command line"),
            (["--push", "otlp=htp://me:secret@x/"], "must begin with http:// or https://"),
            (["--push", "me:secret@x"], "give pyroscope=URL or otlp=URL"),
            (["--push", "otlp=http://x/secret?@"], "without a query, a fragment or spaces"),
            (["--push", url, "--push", url], "it is given twice"),
            ([f"--push={url}{number}" for number in range(5)], "at most 4"),
            (["--push", url, "--tag", "a"], "give KEY=VALUE"),
            (["--push", url, "--tag", "=b"], "give KEY=VALUE"),
            (["--push", url, "--tag", "1a=b"], "give KEY=VALUE"),
            (["--push", url, "--tag", "a-b=c"], "give KEY=VALUE"),
            (["--push", url, "--tag", "a="], "1 to 1024 printable characters"),
            (["--push", url, "--tag", "a=\t"], "1 to 1024 printable characters"),
            (["--push", url, "--tag", os.fsdecode(b"a=caf\xe9")], "1 to 1024 printable characters, in UTF-8"),
            (["--push", url, "--tag", "a=" + 1025 * "x"], "1 to 1024 printable characters"),
            (["--push", url, "--tag", "a=1", "--tag", "a=2"], "its key is given twice"),
            (["--push", url, "--tag", "a.b=1", "--tag", "a_b=2"], "its key is given twice"),
            (["--push", url, "--tag", "service_name=x"], "--service sets"),
            (["--push", url, "--tag", "pyroscope.spy=x"], "this key is set already"),
            (["--push", url, "--tag", "_.name__=x"], "this key is set already"),
            (["--push", url, "--tag", "__name__=x"], "this key is set already"),
            (["--push", url, *(f"--tag=a{number}=1" for number in range(17))], "at most 16"),
            (["--push", url, "--service", ""], "give its name"),
            (["--push", url, "--push-every", "99ms"], "from 100ms to 1h"),
            (["--push", url, "--push-every", "61m"], "from 100ms to 1h"),
            (["--push", url, "--push-kinds", "wall,heap"], "give some of wall, cpu"),
            (["--push", url, "--push-kinds", ""], "give some of wall, cpu"),
            (["--push", url, "--push-kinds", "wall,"], "give some of wall, cpu"),
            (["--push", url, "--push-spool-size", "1K"], "at least 64K"),
            (["--push", url, "--push-spool-size", "M"], "at least 64K"),
            (["--push", url, "--push-spool-size", "9999999G"], "at least 64K"),
            (["--push", url, "--push-spool", ""], "give a directory"),
            (["--tag", "a=b"], "there is no server to push to"),
            (["--push-every", "10s"], "there is no server to push to"),
            (["--listen", "none"], "--listen none serves nobody")):
        done = world.fgprof("serve", "-p", os.getpid(), *arguments)
        assert done.returncode == 2 and why in done.stderr and done.stderr.count("\n") == 1, (arguments, done)
        assert "secret" not in done.stderr, done
    done = world.fgprof("serve", "-p", os.getpid(), "--push", url, "--listen", "none",
                        env=without("HOME", "XDG_STATE_HOME", "STATE_DIRECTORY"))
    assert done.returncode == 1 and "there is no directory for the spool" in done.stderr, done


def test_without_libcurl(world):
    for name in "libcurl.so.4", "libcurl-gnutls.so.4":
        os.makedirs(world.path("none"), exist_ok=True)
        open(f"{world.path('none')}/{name}", "w").write("no library\n")
    done = world.fgprof("serve", "-p", os.getpid(), "--push", "otlp=http://127.0.0.1:1", "--listen", "none",
                        env=dict(os.environ, LD_LIBRARY_PATH=world.path("none")))
    assert done.returncode == 1, done
    assert done.stderr == "fgprof-c: can't push: libcurl is not installed (Debian: libcurl4)\n", done.stderr


def test_where_the_spool_is(world):
    for name, below in (("XDG_STATE_HOME", "/fgprof-c/push/0"), ("HOME", "/.local/state/fgprof-c/push/0"),
                        ("STATE_DIRECTORY", "/push/0")):
        environment = without("HOME", "XDG_STATE_HOME", "STATE_DIRECTORY", **{name: world.path(name)})
        with receiving() as receiver, world.running("holders", 60) as target:
            sampler = world.start("serve", "-p", target.pid, "--listen", "none", "--push", "otlp=" + receiver.url,
                                  "--push-every", "100ms", env=environment)
            receiver.wait(1)
            assert os.stat(world.path(name) + below).st_mode & 0o777 == 0o700
            sampler.send_signal(signal.SIGTERM)
            sampler.communicate(timeout=HANGS_S)


def test_metrics(world):
    need("promtool")
    with receiving() as receiver, world.running("holders", 60) as target, \
            pushing(world, "-p", target.pid, "--push", "otlp=" + receiver.url, "--push",
                    f"pyroscope={receiver.url}/ingest") as pusher:
        assert listening(pusher.sampler.pid)
        wait_for(lambda: pusher.counts("es_total") >= 3, "pushes")
        assert pusher.metric("fgprof_requests_in_progress") == 0
        text = pusher.text("/metrics")
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=60)
        assert checked.returncode == 0 and not checked.stdout, checked.stdout
        for name in ("fgprof_pushes_total", "fgprof_push_retries_total"):
            for api in "otlp", "ingest":
                assert re.search(rf'^{name}\{{api="{api}",server="{receiver.url}"\}} \d+$', text, re.M), text
        pusher.stop()
        # Each is counted once.
        assert len(receiver.requests) == len({request.body for request in receiver.requests})
