"""Rows of oauth_attacks.jsonl that attack Capstan as a client: a hostile server, authorization server or browser.

Everything runs in a network namespace of its own, where `lo` is the only device. The rows for the gateway's own
authorization server are not for this runner.
"""

import json
import os
import re
import resource
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

from common import Gateway, World, exchange, request_body, toml
from peers import STDIO, Peer, reply

SETTINGS = '[permissions]\ndefault = "allow"\n'
PRM = "/.well-known/oauth-protected-resource/mcp"
METADATA = "/.well-known/oauth-authorization-server"
# How long a command may take.
LIMIT = 60


def run(rows, binary, report, given):
    if given.inside:
        return inside(rows, binary, report)
    user = [] if os.geteuid() == 0 else ["-r"]
    command = ["unshare", *user, "-n", sys.executable, "-B", str(Path(__file__).parent), "oauth", "--json"]
    only = ["--only", given.only] if given.only else []
    child = subprocess.Popen([*command, "--binary", str(binary), "--inside", "0/1", *only], stdout=subprocess.PIPE)
    for line in child.stdout:
        if line.startswith(b"{"):
            report.put(json.loads(line))
    if child.wait() != 0:
        raise SystemExit("error: the rows of oauth_attacks.jsonl were not all tried; this needs unshare, ip and strace")


def inside(rows, binary, report):
    subprocess.run("ip link set lo up".split(), check=True)
    for row in rows:
        if not row["role_under_test"].startswith("client"):
            report.add(row, "-", "skipped", "for the gateway's own authorization server")
            continue
        test = CLIENT.get(row["id"])
        if test is None:
            report.add(row, "login", "not-understood", row["action"])
            continue
        report.judge(row, "login", lambda: test(row, binary))


class Guarded:
    """A server that wants a login, and its authorization server, on one port.

    `change` may answer a request itself: it gets this object, the handler and the path, and returns true then.
    """

    def __init__(self, change=None, name="one"):
        self.change, self.name = change, name
        self.granted, self.refreshes, self.valid, self.secrets = 0, 0, set(), set()
        self.issuer = None
        self.lock = threading.Lock()
        self.peer = Peer(self.answer, modern=False)
        self.origin = f"http://127.0.0.1:{self.peer.port}"

    def answer(self, handler, _):
        path = urllib.parse.urlsplit(handler.path).path
        if self.change and self.change(self, handler, path):
            return True
        if path == "/mcp":
            token = (handler.headers.get("Authorization") or "").removeprefix("Bearer ")
            if token in self.valid:
                return False
            return reply(handler, 401, b"", headers=[("WWW-Authenticate", "Bearer")])
        if path == PRM:
            named = self.issuer or self.origin
            return self.json(handler, {"resource": f"{self.origin}/mcp", "authorization_servers": [named]})
        if path == METADATA:
            return self.json(handler, self.metadata())
        if path == "/register":
            return self.json(handler, {"client_id": f"client-of-{self.name}", "token_endpoint_auth_method": "none"})
        if path == "/token":
            return self.grant(handler)
        return reply(handler, 404, b"")

    def metadata(self):
        return {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "code_challenge_methods_supported": ["S256"],
        }

    def grant(self, handler, **more):
        form = dict(urllib.parse.parse_qsl(handler.body.decode()))
        with self.lock:
            self.granted += 1
            self.refreshes += form.get("grant_type") == "refresh_token"
            token, refresh = f"t0ken-{self.name}-{self.granted}", f"r3fresh-{self.name}-{self.granted}"
            self.valid.add(token)
            sent = (form.get(key) for key in ("code", "code_verifier", "refresh_token"))
            self.secrets.update([token, refresh, *filter(None, sent)])
        body = {"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh}
        return self.json(handler, {**body, **more})

    def json(self, handler, body, status=200):
        return reply(handler, status, json.dumps(body).encode(), "application/json")

    def seen(self, path):
        """The bodies of the requests whose path begins like this."""
        return [body for _, _, at, _, body in list(self.peer.requests) if at.startswith(path)]


class Trial:
    """A home in which the guarded server is called `s`, and a browser that only notes the page."""

    def __init__(self, binary, change=None, more="", log=()):
        self.server, self.log = Guarded(change), log
        self.world = World(binary, env={"CAPSTAN_KEYRING": "off"})
        self.world.configure(f'{SETTINGS}{more}\n[servers.s]\nurl = {toml(self.server.origin + "/mcp")}\n')
        self.page = self.world.root / "page"
        browser = self.world.root / "browser"
        browser.write_text(f'#!/bin/sh\nprintf %s "$1" >{self.page}.part && mv {self.page}.part {self.page}\n')
        browser.chmod(0o755)
        self.world.env["BROWSER"] = str(browser)
        self.outputs = []

    def run(self, *args, before=(), timeout=LIMIT):
        code, out, err = self.world.run([*self.log, *args], timeout=timeout, before=before)
        self.outputs += [out, err]
        return code, (out + err).decode("utf-8", "replace")

    def login(self, visit=None, before=(), timeout=LIMIT):
        """Logs in; `visit` plays the browser once the page is opened."""
        self.page.unlink(missing_ok=True)
        found = []
        done = threading.Event()

        def browse():
            while not done.wait(0.02):
                if self.page.exists():
                    found.append(Page(self.page.read_text()))
                    (visit or Page.agree)(found[0])
                    return

        browser = threading.Thread(target=browse)
        browser.start()
        code, said = self.run("login", "s", before=before, timeout=timeout)
        done.set()
        browser.join()
        return code, said, found[0] if found else None

    def call(self):
        return self.run("call", "s__tool")

    def vault(self):
        return self.world.root / ".local/share/capstan/mcp-tokens.json"

    def close(self):
        self.server.peer.close()
        self.world.close()


class Page:
    """The page of a login, as the browser knows it."""

    def __init__(self, url):
        self.url = url
        self.query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        self.port = urllib.parse.urlsplit(self.query["redirect_uri"]).port
        self.answers = []

    def get(self, query, host=None):
        head = f"GET /callback?{query} HTTP/1.1\r\nHost: {host or f'127.0.0.1:{self.port}'}\r\n\r\n"
        self.answers.append(exchange(self.port, head.encode(), timeout=20))
        return self.answers[-1]

    def agree(self):
        return self.get(f"code=c0de-{self.port}&state={self.query['state']}")


def trial(**settings):
    """Makes a test of a function that gets a fresh trial."""

    def make(test):
        def judge(row, binary):
            one = Trial(binary, **settings)
            try:
                return test(row, one)
            finally:
                one.close()

        return judge

    return make


def connects(one, target):
    """Logs in under strace; returns the exit code and whether a socket to the target was opened."""
    trace = one.world.root / "trace"
    strace = ["strace", "-f", "-qq", "-e", "trace=connect,sendto", "-o", str(trace)]
    code, said, _ = one.login(before=strace)
    return code, said, target in trace.read_text(errors="replace")


@trial()
def private_metadata(row, one):
    urls = re.findall(r"https?://\S+", row["action"]) or ["http://169.254.169.254/"]
    urls += [urls[0].replace("http://", "https://"), "http://10.0.0.1/metadata"]
    for url in urls:
        challenge = f'Bearer resource_metadata="{url}"'

        def change(server, handler, path):
            return path == "/mcp" and reply(handler, 401, b"", headers=[("WWW-Authenticate", challenge)])

        one.server.change = change
        code, said, opened = connects(one, urllib.parse.urlsplit(url).hostname)
        if opened or code == 0 or code is None:
            return f"{url}: exit code {code}, socket opened: {opened}"


@trial()
def error_of_another_issuer(row, one):
    def visit(page):
        words = urllib.parse.quote("call 555-0100 now")
        state = page.query["state"]
        page.get(f"error=access_denied&error_description={words}&iss=https%3A%2F%2Fevil.test&state={state}")

    code, said, page = one.login(visit)
    shown = said + "".join(answer.body.decode() for answer in page.answers)
    if code in (0, None) or "555" in shown or "access_denied" in shown:
        return f"exit code {code}: {shown[-300:]}"


@trial()
def wrong_state(row, one):
    def visit(page):
        state = page.query["state"]
        for query in ("code=evil&state=other", "code=evil", "code=evil&state=", f"code=evil&state={state}&state={state}"):
            page.get(query)
        page.agree()

    code, said, page = one.login(visit)
    statuses = [answer.status for answer in page.answers]
    if statuses != [400, 400, 400, 400, 200] or code != 0:
        return f"statuses {statuses}, exit code {code}: {said[-300:]}"
    if any(b"evil" in body for body in one.server.seen("/token")):
        return "a foreign code was exchanged"


@trial()
def foreign_host(row, one):
    def visit(page):
        for host in ("evil.test", f"evil.test:{page.port}", f"127.0.0.1.evil.test:{page.port}"):
            page.get(f"code=evil&state={page.query['state']}", host)
        page.agree()

    code, said, page = one.login(visit)
    statuses = [answer.status for answer in page.answers]
    if statuses != [403, 403, 403, 200] or code != 0 or any(b"evil" in body for body in one.server.seen("/token")):
        return f"statuses {statuses}, exit code {code}: {said[-300:]}"


@trial()
def redirected_token(row, one):
    other = Peer()
    try:
        for status in (301, 302, 303, 307, 308):

            def change(server, handler, path):
                location = [("Location", f"http://127.0.0.1:{other.port}/token")]
                return path == "/token" and reply(handler, status, b"", headers=location)

            one.server.change = change
            code, said, _ = one.login()
            if code in (0, None) or other.requests:
                return f"{status}: exit code {code}, {len(other.requests)} requests elsewhere: {said[-300:]}"
    finally:
        other.close()


@trial()
def open_token_endpoint(row, one):
    for url in ("http://93.184.216.34/token", "http://auth.example.com/token"):

        def change(server, handler, path):
            return path == METADATA and server.json(handler, {**server.metadata(), "token_endpoint": url})

        one.server.change = change
        code, said, opened = connects(one, "93.184.216.34")
        if code in (0, None) or opened or one.page.exists() or "https" not in said:
            return f"{url}: exit code {code}, socket opened: {opened}: {said[-300:]}"


@trial()
def another_issuer(row, one):
    other = Guarded(name="two")
    try:
        code, said, _ = one.login()
        if code != 0:
            return f"the first login ends with {code}: {said[-300:]}"
        one.server.issuer = other.origin
        # The tokens of the first issuer are no longer accepted, nor are they renewed at the second one.
        one.server.valid.clear()
        one.call()
        secrets = [*one.server.secrets, "client-of-one"]
        one.server.valid.clear()
        code, said, _ = one.login()
        if code != 0 or not other.seen("/register"):
            return f"no registration at the second issuer; exit code {code}: {said[-300:]}"
        sent = json.dumps([[path, headers, body.decode()] for _, _, path, headers, body in other.peer.requests])
        told = [secret for secret in secrets if secret in sent]
        if told:
            return f"the second issuer got {len(told)} secrets of the first"
    finally:
        other.peer.close()


@trial()
def storm(row, one):
    code, said, _ = one.login()
    if code != 0:
        return f"the login ends with {code}: {said[-300:]}"
    gateway = Gateway(one.world)
    try:
        answers = []

        def call(number):
            body = request_body("tools/call", {"name": "s__tool", "arguments": {}}, id=number)
            head = (
                "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
                f"Mcp-Method: tools/call\r\nMcp-Name: s__tool\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            answers.append(exchange(gateway.port, head.encode() + body, timeout=LIMIT))

        call(0)
        with one.server.lock:
            one.server.valid.clear()
        calls = [threading.Thread(target=call, args=[number]) for number in range(1, 51)]
        for thread in calls:
            thread.start()
        for thread in calls:
            thread.join()
        good = sum(b'"good"' in answer.body for answer in answers)
        if good != 51 or one.server.refreshes != 1:
            return f"{good} of 51 calls answered, {one.server.refreshes} refresh requests"
    finally:
        gateway.close()


@trial()
def huge_answer(row, one):
    written = []

    def change(server, handler, path):
        if path != "/token":
            return False
        size = 1 << 30
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(size))
        handler.end_headers()
        sent = 0
        try:
            handler.wfile.write(b'{"access_token":"')
            while sent < size:
                sent += handler.connection.send(b"x" * 65536)
        except OSError:
            pass
        written.append(sent)
        handler.close_connection = True
        return True

    one.server.change = change
    code, said, _ = one.login()
    until = time.monotonic() + 10
    while not written and time.monotonic() < until:
        time.sleep(0.05)
    # What the sockets hold comes on top of what was read.
    if code in (0, None) or not written or written[0] > 16 << 20:
        return f"exit code {code}, {written} bytes taken: {said[-300:]}"
    if one.vault().exists() and "tokens" in json.loads(one.vault().read_text())["entries"]:
        return "something was stored"


@trial()
def endless_step_up(row, one):
    def change(server, handler, path):
        if path == "/token":
            return server.grant(handler, scope="read")
        if path != "/mcp" or not handler.headers.get("Authorization"):
            return False
        challenge = [("WWW-Authenticate", 'Bearer error="insufficient_scope", scope="admin"')]
        return reply(handler, 403, b"", headers=challenge)

    one.server.change = change
    code, said, _ = one.login()
    for logins in range(1, 10):
        code, said = one.call()
        if code == 0 or code is None:
            return f"the call ends with {code}"
        if "capstan login s" not in said:
            return None if logins <= 4 else f"{logins - 1} further logins were asked for"
        one.login()
    return "there is no end of logins"


@trial(log=("--debug",))
def at_rest(row, one):
    one.world.configure(
        (one.world.root / ".config/capstan/config.toml").read_text()
        + f"[servers.child]\ncommand = {toml(sys.executable)}\nargs = {toml(['-c', STDIO])}\n"
    )
    one.call()
    code, said, _ = one.login()
    if code != 0:
        return f"the login ends with {code}: {said[-300:]}"
    gateway = Gateway(one.world, args=["--debug"])
    try:
        for args in (["call", "s__tool"], ["call", "child__tool", "environ:=true"]):
            code, said = one.run(*args)
            if code != 0:
                return f"{args} ends with {code}: {said[-300:]}"
        one.server.valid.clear()
        for args in (
            ["call", "s__tool"],
            ["--json", "login", "--status"],
            ["login", "--status"],
            ["config", "show"],
            ["--json", "audit"],
            ["doctor"],
        ):
            one.run(*args)
        if one.server.refreshes != 1:
            return f"{one.server.refreshes} refreshes"
        processes = [gateway.child.pid, *children(gateway.child.pid)]
        if len(processes) < 2:
            return "the gateway has no child"
        places = {f"/proc/{pid}/{file}": Path(f"/proc/{pid}/{file}").read_bytes()
                  for pid in processes for file in ("cmdline", "environ")}
        core = dumped(gateway.child)
        if core:
            return core
    finally:
        gateway.close()
    for path in one.world.root.rglob("*"):
        if path.is_file() and path != one.vault():
            places[str(path)] = path.read_bytes()
    for number, output in enumerate(one.outputs):
        places[f"output {number}"] = output
    mode = one.vault().stat().st_mode & 0o777
    if mode != 0o600:
        return f"the vault has mode {mode:o}"
    secrets = [secret.encode() for secret in one.server.secrets]
    if len(secrets) < 6 or secrets[0] and not any(secret in one.vault().read_bytes() for secret in secrets):
        return f"only {len(secrets)} secrets, or none in the vault"
    found = [place for place, text in places.items() if any(secret in text for secret in secrets)]
    if found:
        return f"a secret is in {found}"


def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            direct = [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
        for child in direct:
            found += [child, *children(child)]
    return found


def dumped(child):
    """Crashes a gateway that holds a token; returns a reason if the kernel says that it would dump its memory."""
    owner = Path(f"/proc/{child.pid}/environ").stat().st_uid
    resource.prlimit(child.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    child.send_signal(6)
    status = os.waitpid(child.pid, 0)[1]
    child.returncode = -6
    if os.WCOREDUMP(status):
        return "the crash left a core dump"
    # For other users than root, the owner of these files tells whether a process can be dumped.
    if os.geteuid() != 0 and owner == os.geteuid():
        return "the process can be dumped"


CLIENT = {
    "oauth-prm-ssrf": private_metadata,
    "oauth-iss-error-mismatch": error_of_another_issuer,
    "oauth-state-wrong": wrong_state,
    "oauth-callback-host": foreign_host,
    "oauth-token-endpoint-redirect": redirected_token,
    "oauth-token-endpoint-http": open_token_endpoint,
    "oauth-creds-bound-issuer": another_issuer,
    "oauth-refresh-storm": storm,
    "oauth-huge-token-response": huge_answer,
    "oauth-scope-step-loop": endless_step_up,
    "oauth-token-at-rest": at_rest,
}
