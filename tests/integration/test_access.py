"""Who may ask a serving profiler: its own user and root, all local users, or whoever has the token."""

import base64
import contextlib
import errno
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import traceback

from harness import HANGS_S, Skip, need, ready, tool, wait_for
from test_capture import FIRST_AT, SECCOMP_RET_ERRNO, refuse
from test_serve import serving, top

NOBODY, DAEMON = 65534, 1
SOCKET = {"x86_64": 41, "aarch64": 198}
AT_ONCE = 16


def needs_root():
    if os.geteuid():
        raise Skip("needs root, to ask as other users")


def identity(user):
    return {"user": user, "group": user, "extra_groups": [], "cwd": "/"} if user else {}


def address_of(server):
    return server.path or f"{server.host.strip('[]')}:{server.port}"


def ask(address, path, how, headers):
    """Returns the status and the text of the answer."""
    connection = http.client.HTTPConnection("localhost")
    if address.startswith("/"):
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(address)
    else:
        host, port = address.rsplit(":", 1)
        connection.sock = socket.create_connection((host, int(port)))
    connection.sock.settimeout(HANGS_S)
    connection.request("GET", path, headers=headers)
    if how == "half-closed":
        connection.sock.shutdown(socket.SHUT_WR)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(errors="replace")


def ask_as(user, server, path="/metrics", how="", address=None, **headers):
    """Like `ask`, in a process of that user."""
    "localhost".encode("idna")  # loads what the other user may not read
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(reader)
            if user:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            os.write(writer, json.dumps(ask(address or address_of(server), path, how, headers)).encode())
        except BaseException:  # shown, since the parent waits for an answer
            traceback.print_exc(file=sys.stdout)
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    assert text, "no answer"
    status, text = json.loads(text)
    return status, text


def check_refused(user, server, **options):
    for path in "/", "/metrics", "/debug/fgprof?seconds=1", "/debug/pprof/goroutine?debug=2", "/no/such":
        status, text = ask_as(user, server, path, **options)
        assert status == 403 and text.count("\n") == 1, (path, status, text)
        assert f"user {user} may not ask" in text and "--allow-local-users or --token-file FILE" in text, text
        assert "root on this machine" in text, text


def need_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError as error:
        raise Skip("no IPv6 on loopback") from error


def as_user(world, name):
    """A copy of a program that every user may run."""
    path = world.path(os.path.basename(name))
    shutil.copy(name, path)
    os.chmod(path, 0o755)
    return path


def token_in(world, text="secret\n"):
    path = world.path("token")
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)
    return path


def check_own_user_and_root(world, **options):
    with world.running("holders", 60) as target, serving(world, "-p", target.pid, **options) as server:
        assert ask_as(0, server)[0] == 200
        assert ask_as(0, server, how="half-closed")[0] == 200
        check_refused(NOBODY, server)
        check_refused(NOBODY, server, how="half-closed")
        if "127.0.0.1" in server.url:
            mapped = f"::ffff:127.0.0.1:{server.port}"
            assert ask_as(0, server, address=mapped)[0] == 200
            check_refused(NOBODY, server, address=mapped)


def test_other_users_are_refused(world):
    needs_root()
    check_own_user_and_root(world)


def test_other_users_are_refused_on_ipv6(world):
    needs_root()
    need_ipv6()
    check_own_user_and_root(world, listen="[::1]:0")
    check_own_user_and_root(world, listen="[::ffff:127.0.0.1]:0")


def test_other_users_are_refused_without_netlink(world):
    """As under seccomp, or with systemd's RestrictAddressFamilies."""
    needs_root()

    def refuse_netlink():
        refuse(SOCKET, SECCOMP_RET_ERRNO | errno.EAFNOSUPPORT, (FIRST_AT, socket.AF_NETLINK))
    check_own_user_and_root(world, preexec_fn=refuse_netlink)
    need_ipv6()
    check_own_user_and_root(world, preexec_fn=refuse_netlink, listen="[::1]:0")


def test_an_ordinary_users_profiler(world):
    """Its user may send requests, and root may."""
    needs_root()
    world.program = as_user(world, world.program)
    fixture = as_user(world, world.fixture("holders"))
    with ready(fixture, 60, **identity(NOBODY)) as target, \
            serving(world, "-p", target.pid, **identity(NOBODY)) as server:
        assert ask_as(NOBODY, server)[0] == 200
        assert ask_as(0, server)[0] == 200
        status, text = ask_as(DAEMON, server)
        assert status == 403 and text.startswith(f"user {DAEMON} may not ask: ask as user {NOBODY} or root"), text


@contextlib.contextmanager
def serving_in_user_namespace(world, options, listen):
    """A profiler of the user nobody in a user namespace, with a process of its own there."""
    command, script = ["unshare", "--user", *options], world.path("inside")
    if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL, check=False, **identity(NOBODY)).returncode:
        raise Skip("no user namespaces")
    ready_file = world.path("any/ready")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{world.path('fixture-holders')} 60 > {ready_file} &\n"
                   f"until [ -s {ready_file} ]; do sleep 0.05; done\n"
                   f'exec {world.path("fgprof-c")} "$@" -p $!\n')
    os.chmod(script, 0o755)
    with open(world.path("outside"), "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {" ".join(command)} {script} "$@"\n')
    os.chmod(world.path("outside"), 0o755)
    world.program = world.path("outside")
    with serving(world, listen=listen, **identity(NOBODY)) as server:
        try:
            yield server
        finally:
            os.kill(int(re.search(r"\((\d+)\)", server.what)[1]), signal.SIGKILL)
            os.unlink(ready_file)


def check_unknown_users(world, options, *users):
    need("unshare")
    as_user(world, world.program)
    as_user(world, world.fixture("holders"))
    os.mkdir(world.path("any"))
    os.chmod(world.path("any"), 0o777)
    for listen in "127.0.0.1:0", "unix:" + world.path("any/socket"):
        with serving_in_user_namespace(world, options, listen) as server:
            if server.path:
                os.chmod(server.path, 0o666)
            for user in users:
                status, text = ask_as(user, server)
                assert status == 403 and "can't be found out (is it in another namespace?)" in text, (user, text)
                assert "--allow-local-users or --token-file FILE" in text, text
            if NOBODY not in users:
                assert ask_as(NOBODY, server)[0] == 200


def test_users_outside_of_a_user_namespace_are_unknown(world):
    """Even root is unknown: inside, all of them have the same number, and 0 is the user who made the
    namespace."""
    needs_root()
    check_unknown_users(world, ["--map-root-user"], 0, DAEMON)


def test_nobody_has_a_number_in_a_user_namespace_without_any(world):
    """To the profiler there, it has the same user as all unknown users."""
    needs_root()
    check_unknown_users(world, [], 0, DAEMON, NOBODY)


def test_all_local_users_may_be_allowed(world):
    needs_root()
    with world.running("holders", 60) as target:
        with serving(world, "-p", target.pid, "--allow-local-users") as server:
            assert ask_as(NOBODY, server)[0] == 200 and ask_as(0, server)[0] == 200
        os.mkdir(world.path("all"))
        os.chmod(world.path("all"), 0o755)
        with serving(world, "-p", target.pid, "--allow-local-users", listen="unix:" + world.path("all/socket")) as server:
            assert os.stat(server.path).st_mode & 0o777 == 0o666
            assert ask_as(NOBODY, server)[0] == 200


def test_users_of_a_unix_socket(world):
    """The socket's mode alone does not admit other users."""
    needs_root()
    with world.running("holders", 60) as target, \
            serving(world, "-p", target.pid, listen="unix:" + world.path("socket")) as server:
        os.chmod(server.path, 0o666)
        assert ask_as(0, server)[0] == 200
        check_refused(NOBODY, server)


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_a_token(world):
    need("go", "curl")
    token = token_in(world)
    with world.running("holders", 60) as target, \
            serving(world, "-p", target.pid, "--token-file", token) as server:
        for authorization in None, "Bearer wrong", "Bearer secretx", "secret", basic("secret", "wrong"), basic("a", ""):
            headers = {"Authorization": authorization} if authorization else {}
            status, got, body = server.ask("/debug/pprof/goroutine", **headers)
            assert status == 401 and body.count(b"\n") == 1 and b"--token-file" in body, (authorization, status, body)
            # A browser then asks for it.
            assert got["WWW-Authenticate"] == 'Basic realm="fgprof-c"' and got["X-Go-Pprof"] == "1", got
        for authorization in "Bearer secret", basic("any", "secret"):
            assert server.ask("/metrics", Authorization=authorization)[0] == 200, authorization
        url = f"http://any:secret@127.0.0.1:{server.port}/"
        assert "\nType: delay\n" in top(url + "debug/pprof/mutex")
        assert "\nfgprof_up 1\n" in tool("curl", "-sf", url + "metrics")
        # It may be replaced, as a secret of Kubernetes is.
        token_in(world, "other")
        assert server.ask("/metrics", Authorization="Bearer secret")[0] == 401
        assert server.ask("/metrics", Authorization="Bearer other")[0] == 200
        token_in(world, "")
        status, _, body = server.ask("/metrics", Authorization="Bearer ")
        assert status == 503 and b"--token-file holds no token" in body, body
        assert server.ask("/metrics", Authorization="Bearer other")[0] == 503
        if os.geteuid() == 0:
            token_in(world)
            assert ask_as(NOBODY, server)[0] == 401
            assert ask_as(NOBODY, server, Authorization="Bearer secret")[0] == 200


def test_local_users_without_a_token(world):
    """Local users need no token if they are admitted anyway."""
    needs_root()
    with world.running("holders", 60) as target, \
            serving(world, "-p", target.pid, "--token-file", token_in(world), "--allow-remote", "--allow-local-users",
                    listen="0.0.0.0:0") as server:
        assert ask_as(NOBODY, server, address=f"127.0.0.1:{server.port}")[0] == 200


def test_who_may_ask_is_checked_first(world):
    """This is checked before anything is sampled."""
    done = world.fgprof("serve", "-p", os.getpid(), "--listen", "0.0.0.0:0", "--allow-remote")
    assert done.returncode == 2 and "--allow-remote needs a token: give --token-file FILE" in done.stderr, done
    done = world.fgprof("serve", "-p", os.getpid(), "--listen", "0.0.0.0:0", "--token-file", token_in(world))
    assert done.returncode == 1 and "--allow-remote with --token-file FILE" in done.stderr, done
    for text, why in ("", "it is empty"), ("two words", "it has a space"), ("two\nlines", "control characters"), \
            ("x" * 8192, "longer than 8191 bytes"):
        done = world.fgprof("serve", "-p", os.getpid(), "--token-file", token_in(world, text))
        assert done.returncode == 1 and why in done.stderr and done.stderr.count("\n") == 1, done
    done = world.fgprof("serve", "-p", os.getpid(), "--token-file", world.path("none"))
    assert done.returncode == 1 and "its file can't be read" in done.stderr, done
    done = world.fgprof("serve", "-p", os.getpid(), "--token-file", "")
    assert done.returncode == 2 and "give a file that holds the token" in done.stderr, done


def test_profiles_at_once(world):
    with world.running("holders", 60) as target, \
            serving(world, "-p", target.pid, "--allow-local-users") as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(contextlib.closing(server.connect())) for _ in range(AT_ONCE)]
        for client in clients:
            client.request("GET", "/debug/fgprof?seconds=300")
        wait_for(lambda: server.metric("fgprof_requests_in_progress") == AT_ONCE, "the requests")
        for path in "/debug/fgprof?last=1s", "/debug/pprof/mutex", "/debug/pprof/goroutine", "/top":
            server.fails(path, 429, f"^{AT_ONCE} profiles are being made for you: try again when one is done$")
        # What costs little is answered.
        assert "fixture-holders" in server.text("/")
        if os.geteuid() == 0:
            assert ask_as(NOBODY, server, "/debug/fgprof?last=1s&format=folded")[0] == 200
        clients[0].close()
        wait_for(lambda: server.ask("/debug/fgprof?last=1s")[0] == 200, "the end of one")
