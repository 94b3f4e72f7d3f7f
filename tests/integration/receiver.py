"""A server to which profiles are pushed: it keeps what it receives, and answers as a test wants."""

import collections
import contextlib
import gzip
import http.server
import re
import socket
import ssl
import struct
import subprocess
import threading
import time
import urllib.parse

from harness import HANGS_S, need, need_file, wait_for

SCHEMA = "/usr/share/gocode/src/github.com/google/pprof/proto"

Request = collections.namedtuple("Request", "path query headers body at")
RESET = "reset"


class Receiver:
    """`answer` gets the number of a request and the request, and returns a status; a status and headers; these and
    a body; or RESET, which breaks the connection."""

    def __init__(self, answer=lambda number, request: 200, port=0, context=None):
        self.requests = []
        self.lock = threading.Lock()
        self.answer = answer
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                path, _, query = self.path.partition("?")
                request = Request(path, dict(urllib.parse.parse_qsl(query)), self.headers, body, time.monotonic())
                with receiver.lock:
                    number = len(receiver.requests)
                    receiver.requests.append(request)
                answered = receiver.answer(number, request)
                if answered == RESET:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
                    return
                status, headers, content = ((*answered, b"")[:3] if isinstance(answered, tuple)
                                            else (answered, {}, b""))
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", port), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def wait(self, count):
        """Waits for this many requests, and returns all."""
        wait_for(lambda: len(self.requests) >= count, f"{count} requests", HANGS_S)
        return list(self.requests)

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@contextlib.contextmanager
def receiving(*arguments, **options):
    receiver = Receiver(*arguments, **options)
    try:
        yield receiver
    finally:
        receiver.close()


def certificate(world):
    """A certificate for 127.0.0.1 that only clients accept that are told to: its file, and the server's
    files."""
    need("openssl")
    key, path = world.path("key.pem"), world.path("certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", path,
                    "-days", "2", "-subj", "/CN=fgprof-c test", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, stderr=subprocess.DEVNULL, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, key)
    return path, context


def parse(text):
    """A message in protoc's text format: {field: [values]}, messages as dictionaries, numbers as such,
    strings as bytes."""
    stack = [{}]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith("{"):
            made = {}
            stack[-1].setdefault(line[:-1].strip(), []).append(made)
            stack.append(made)
        elif line:
            name, value = line.split(": ", 1)
            if value.startswith('"'):
                value = value[1:-1].encode().decode("unicode_escape").encode("latin-1")
            elif re.fullmatch(r"-?\d+", value):
                value = int(value)
            stack[-1].setdefault(name, []).append(value)
    assert len(stack) == 1, text[-200:]
    return stack[0]


def decode(data, message, directory, file):
    done = subprocess.run(["protoc", f"--decode={message}", "-I" + directory, file], input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    # Those that the schema does not have are shown by number.
    assert not re.search(r"^\s*\d+[: ]", text, re.M), text[:2000]
    return parse(text)


def decode_push(world, data):
    need("protoc")
    return decode(data, "pyroscope.PushRequest", world.source + "/tests/push", "pyroscope.proto")


def decode_otlp(world, data):
    need("protoc")
    return decode(gzip.decompress(data), "otlp.ExportProfilesServiceRequest", world.source + "/tests/push",
                  "otlp.proto")


class Pprof:
    """A decoded profile.proto."""

    def __init__(self, data):
        need("protoc")
        schema = need_file("profile.proto", SCHEMA + "/profile.proto")
        self.profile = decode(gzip.decompress(data), "perftools.profiles.Profile", SCHEMA, schema)
        strings = [text.decode() for text in self.profile["string_table"]]

        def name_of(message):
            return strings[message["type"][0]], strings[message["unit"][0]]
        self.types = [name_of(message) for message in self.profile["sample_type"]]
        self.period_type = name_of(self.profile["period_type"][0])
        self.begin_ns = self.profile["time_nanos"][0]
        self.length_ns = self.profile["duration_nanos"][0]
        functions = {row["id"][0]: strings[row["name"][0]] for row in self.profile.get("function", [])}
        places = {row["id"][0]: [functions[line["function_id"][0]] for line in row.get("line", [])]
                  for row in self.profile.get("location", [])}
        self.samples = []  # (functions, leaf first; values; labels)
        for row in self.profile.get("sample", []):
            stack = [function for number in row.get("location_id", []) for function in places[number]]
            labels = {strings[label["key"][0]]: strings[label["str"][0]] for label in row.get("label", [])}
            self.samples.append((stack, row["value"], labels))

    def total(self, value=0, function=None):
        return sum(values[value] for stack, values, _ in self.samples if not function or function in stack)


def is_zero(message):
    """Whether nothing is set in it: strings of zeros count as unset, and so do messages in which nothing is
    set."""
    if isinstance(message, dict):
        return all(is_zero(value) for values in message.values() for value in values)
    return not any(message) if isinstance(message, bytes) else message == 0


class Otlp:
    """A decoded OTLP request, checked for what its readers rely on."""

    def __init__(self, world, data):
        self.request = decode_otlp(world, data)
        dictionary, = self.request["dictionary"]
        tables = {name: dictionary[name + "_table"] for name in (
            "mapping", "location", "function", "link", "string", "attribute", "stack")}
        # Number 0 stands for none.
        for name, rows in tables.items():
            assert is_zero(rows[0]), (name, rows[0])
        self.strings = [text.decode() for text in tables["string"]]
        assert len(set(self.strings)) == len(self.strings)
        self.tables = tables
        self.used = {name: set() for name in tables}
        self.resources = [self.read_resource(row) for row in self.request["resource_profiles"]]
        for number in range(1, len(tables["mapping"])):
            row = tables["mapping"][number]
            self.string(row.get("filename_strindex", [0])[0])
            [self.attribute(index) for index in row.get("attribute_indices", [])]
        # All that there is, is referred to.
        for name, rows in tables.items():
            assert self.used[name] - {0} == set(range(1, len(rows))), (name, self.used[name], len(rows))

    def row(self, table, number):
        self.used[table].add(number)
        return self.tables[table][number]

    def string(self, number):
        self.used["string"].add(number)
        return self.strings[number]

    def value(self, any_value):
        ((kind, (value,)),) = any_value.items()
        if kind == "string_value_strindex":
            return self.string(value)
        return value.decode() if isinstance(value, bytes) else value

    def key(self, attribute):
        return self.string(attribute["key_strindex"][0]) if "key_strindex" in attribute else attribute["key"][0].decode()

    def attribute(self, number):
        assert number > 0
        row = self.row("attribute", number)
        return self.string(row["key_strindex"][0]), self.value(row["value"][0])

    def stack(self, number):
        assert number > 0
        functions = []
        for index in self.row("stack", number).get("location_indices", []):
            assert index > 0
            location = self.row("location", index)
            self.row("mapping", location.get("mapping_index", [0])[0])
            for line in location.get("lines", []):
                function = self.row("function", line["function_index"][0])
                self.string(function.get("system_name_strindex", [0])[0])
                self.string(function.get("filename_strindex", [0])[0])
                functions.append(self.string(function["name_strindex"][0]))
        return functions

    def type_of(self, message):
        return self.string(message["type_strindex"][0]), self.string(message["unit_strindex"][0])

    def read_resource(self, message):
        attributes = {self.key(row): self.value(row["value"][0])
                      for row in message["resource"][0]["attributes"]}
        scope, = message["scope_profiles"]
        assert scope["scope"][0]["name"] == [b"fgprof-c"], scope["scope"]
        profiles = {}
        for row in scope["profiles"]:
            kind, = row["sample_type"]  # one type each
            samples = []
            for sample in row.get("samples", []):
                value, = sample["values"]
                attached = dict(map(self.attribute, sample.get("attribute_indices", [])))
                samples.append((self.stack(sample["stack_index"][0]), value, attached))
            assert len(row["profile_id"][0]) == 16 and any(row["profile_id"][0])
            key = self.type_of(kind) if self.type_of(kind) not in profiles else None
            profiles[key] = dict(period_type=self.type_of(row["period_type"][0]), period=row["period"][0],
                                 begin_ns=row["time_unix_nano"][0], length_ns=row["duration_nano"][0],
                                 samples=samples, id=row["profile_id"][0])
        assert None not in profiles, "a type twice"
        return attributes, profiles


def total(profile, function=None):
    return sum(value for stack, value, _ in profile["samples"] if not function or function in stack)
