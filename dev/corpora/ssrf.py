"""Rows of ssrf.jsonl: which addresses Capstan connects to, by the connect() calls that strace sees.

Everything runs in network and mount namespaces of its own, where `lo` is the only device and every
address leads to it. A small DNS server there gives the answers of the rows.
"""

import ipaddress
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

import names
from common import NotUnderstood, World, toml
from peers import Peer, open_stream, reply

PARTS = 3
# The spellings of this machine that a person may configure.
OWN = ("127.0.0.1", "[::1]", "localhost")
# Where names lead that a row gives no address for: to a public address, so that nothing is refused
# for want of one.
ELSEWHERE = "93.184.216.35"
# What the resolver of the C library reads.
FILES = {
    "resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
SETTINGS = '[permissions]\ndefault = "allow"\n[servers.row]\ntimeout = "5s"\nstartup_timeout = "5s"\n'
CONNECT = re.compile(
    r"connect\(\d+(<[^,]*>)?, \{sa_family=AF_INET6?, .*?sin6?_port=htons\((\d+)\).*?"
    r"(?:inet_addr\(\"([^\"]+)\"\)|inet_pton\(AF_INET6, \"([^\"]+)\")"
)


def run(rows, binary, report, given):
    if given.inside:
        part, parts = map(int, given.inside.split("/"))
        return inside(rows[part::parts], binary, report)
    user = [] if os.geteuid() == 0 else ["-r"]
    command = ["unshare", *user, "-n", "-m", sys.executable, "-B", str(Path(__file__).parent), "ssrf", "--json"]
    only = ["--only", given.only] if given.only else []
    children = [
        subprocess.Popen([*command, "--binary", str(binary), "--inside", f"{part}/{PARTS}", *only], stdout=subprocess.PIPE)
        for part in range(PARTS)
    ]
    guard = threading.Lock()

    def read(child):
        for line in child.stdout:
            if line.startswith(b"{"):
                with guard:
                    report.put(json.loads(line))

    readers = [threading.Thread(target=read, args=[child]) for child in children]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    if any(child.wait() != 0 for child in children):
        raise SystemExit("error: the rows of ssrf.jsonl were not all tried; this needs unshare, ip and strace")


def inside(rows, binary, report):
    """Tries rows; runs in the namespaces."""
    devices = subprocess.run(["ip", "-o", "link"], check=True, capture_output=True).stdout.splitlines()
    if len(devices) != 1 or b" lo:" not in devices[0]:
        raise SystemExit("error: this is not an empty network namespace")
    for command in ("ip link set lo up", "ip route add local 0.0.0.0/0 dev lo", "ip -6 route add local ::/0 dev lo"):
        subprocess.run(command.split(), check=True)
    dns = names.Server()
    with tempfile.TemporaryDirectory() as folder:
        for file, text in FILES.items():
            path = Path(folder) / file
            path.write_text(text)
            subprocess.run(["mount", "--bind", str(path), f"/etc/{file}"], check=True)
        for row in rows:
            for feed, test in feeds(row):
                if test is None:
                    report.add(row, feed, "skipped", "configured like this, the address is allowed")
                else:
                    trial = Trial(row, binary, dns)
                    report.judge(row, feed, lambda: test(trial))
                    trial.world.close()


def feeds(row):
    """The ways by which the URL of a row reaches Capstan, each with its test."""
    expected, policy = str(row.get("expected", "")), row.get("policy")
    if not isinstance(row.get("url"), str) or policy not in ("public-only", "allow-loopback"):
        return [("-", not_understood(f"policy = {policy!r}, url = {row.get('url')!r}"))]
    if row.get("class") == "redirect":
        return [("redirect", redirected)]
    if "rebind" in expected:
        return [("configured", rebound)]
    if expected in ("allow", "warn"):
        return [("configured", allowed)] + ([("openapi", allowed_openapi)] if policy == "public-only" else [])
    if expected != "deny":
        return [("-", not_understood(f"expected = {expected!r}"))]
    if policy == "allow-loopback":
        return [("configured", denied)]
    # A person may configure a socket of this machine as well.
    own = authority(row["url"]) in OWN or row["url"].lower().startswith("unix:")
    # A person may write a user name into an address; servers may not.
    own = own or ("userinfo" in str(row.get("class")) and not literal(row))
    return [
        ("configured", None if own else denied),
        ("redirect", denied_redirect),
        ("endpoint", denied_endpoint),
        ("openapi", None if authority(row["url"]) in OWN else denied_openapi),
        ("token", denied_token),
    ]


def literal(row):
    """Whether the host of a row is an address."""
    try:
        return bool(ipaddress.ip_address(str(row.get("whatwg_host")).strip("[]")))
    except ValueError:
        return False


def not_understood(why):
    def test(trial):
        raise NotUnderstood(why)
    return test


def authority(url):
    """The host as it is written in an address over HTTP, or nothing."""
    found = re.match(r"https?://([^/?#\\]*)", url)
    return re.sub(r":\d*$", "", found[1]) if found else None


class Trial:
    """One run of the binary under strace."""

    def __init__(self, row, binary, dns):
        self.row, self.url, self.dns = row, row["url"], dns
        self.world = World(binary)
        self.own_ports = set()
        answers = row.get("resolves_to")
        dns.set([[ELSEWHERE] if answers is None else answers])

    def serve(self, answer, **options):
        peer = Peer(answer, **options)
        self.own_ports.add(peer.port)
        return peer

    def call(self, settings, tool="tool", env=None):
        """Calls a tool of the server with these settings; returns the error and the connections."""
        self.world.configure(SETTINGS + settings)
        trace = self.world.root / "trace"
        before = ["strace", "-f", "-qq", "-yy", "-s", "200", "-e", "trace=connect", "-o", str(trace)]
        env = {**self.world.env, **(env or {})}
        code, out, err = self.world.run(["call", f"row__{tool}", "--json"], before=before, env=env)
        if code is None:
            return None, "it did not end within 30 s", []
        try:
            error = json.loads(out).get("error") or {}
        except ValueError:
            error = {"code": "-", "message": (out + err)[-200:].decode("utf-8", "replace")}
        return code, error, self.connections(trace.read_text("utf-8", "replace"))

    def connections(self, trace):
        """The addresses that were connected to over TCP, without the servers of this runner."""
        found = []
        for kind, port, v4, v6 in CONNECT.findall(trace):
            address, port = v4 or v6, int(port)
            ours = address == "127.0.0.1" and port in self.own_ports
            # Resolvers also "connect" datagram sockets, to learn which of our addresses would be used.
            if "UDP" not in kind and port not in (0, 53) and not ours and (address, port) not in found:
                found.append((address, port))
        path = urlsplit(self.url).path if self.url.lower().startswith("unix:") else None
        if path and f'sun_path="{path}"' in trace:
            found.append((path, "-"))
        return found

    def targets(self):
        """The addresses that the URL stands for."""
        answers = self.row.get("resolves_to")
        return set(answers) if answers else {str(self.row.get("whatwg_host")).strip("[]")}


def shown(connections):
    return "connected to " + ", ".join(f"{address} port {port}" for address, port in connections[:3])


def denied(trial):
    code, error, connections = trial.call(f'url = {toml(trial.url)}\ntype = "http"\n')
    if connections:
        return shown(connections)
    return refusal(trial.row, code, error)


def refusal(row, code, error):
    """Says what is wrong with a refusal of a configured URL."""
    if not isinstance(error, dict):
        return error
    if code == 0:
        return "the call succeeded"
    if error.get("code") == "policy_blocked":
        if code != 6 or error.get("retryable") is not False:
            return f"policy_blocked with exit code {code}, retryable {error.get('retryable')}"
        return None
    # What is no address of a server, or leads nowhere, fails before there is an address to judge.
    odd = row.get("parse_error") or not authority(row["url"]) or "confusion" in str(row.get("class"))
    if odd or row.get("resolves_to") == []:
        return None
    return f"refused as {error.get('code')} with exit code {code}, not as policy_blocked: {str(error.get('message'))[:120]}"


def attempted(trial, code, error, connections):
    if not isinstance(error, dict):
        return error
    if any(address in trial.targets() for address, _ in connections):
        return None
    return f"no connection was tried: {error.get('code')}, {str(error.get('message'))[:160]}"


def allowed(trial):
    return attempted(trial, *trial.call(f'url = {toml(trial.url)}\ntype = "http"\n'))


def rebound(trial):
    later = re.findall(r"(?:\d+\.){3}\d+", str(trial.row.get("note"))) or ["127.0.0.1"]
    trial.dns.set([trial.row["resolves_to"], later])
    code, error, connections = trial.call(f'url = {toml(trial.url)}\ntype = "http"\n')
    inner = [found for found in connections if not ipaddress.ip_address(found[0]).is_global]
    return shown(inner) if inner else attempted(trial, code, error, connections)


def redirecting(status, location):
    def answer(handler, _):
        handler.send_response(status)
        handler._headers_buffer.append(b"Location: " + location.encode() + b"\r\n")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True
    return answer


def no_connection(called):
    _, error, connections = called
    if connections:
        return shown(connections)
    return error if isinstance(error, str) else None


def denied_redirect(trial):
    for status in (307, 302):
        peer = trial.serve(redirecting(status, trial.url))
        why = no_connection(trial.call(f'url = "http://127.0.0.1:{peer.port}/mcp"\ntype = "http"\n'))
        asked, _ = peer.requests, peer.close()
        if why or not asked:
            return why or "the server that redirects was not asked"
    return None


def denied_endpoint(trial):
    def answer(handler, message):
        if message is None:
            open_stream(handler)
            handler.wfile.write(b"event: endpoint\ndata: " + trial.url.encode() + b"\n\n")
            return True
        return reply(handler, 202, b"")

    peer = trial.serve(answer)
    why = no_connection(trial.call(f'url = "http://127.0.0.1:{peer.port}/sse"\ntype = "sse"\n'))
    asked, _ = peer.requests, peer.close()
    return why or (None if asked else "the server that names the endpoint was not asked")


def document(trial, **members):
    path = trial.world.root / ".config" / "capstan" / "api.json"
    operation = {"operationId": "get", "responses": {"200": {"description": "ok"}}}
    api = {"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {"/x": {"get": operation}}, **members}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(api))


def openapi(trial):
    document(trial, servers=[{"url": trial.url}])
    return trial.call('openapi = "api.json"\n', "get")


def denied_openapi(trial):
    return no_connection(openapi(trial))


def allowed_openapi(trial):
    return attempted(trial, *openapi(trial))


def denied_token(trial):
    peer = trial.serve(None)
    flow = {"clientCredentials": {"tokenUrl": trial.url, "scopes": {}}}
    document(
        trial,
        components={"securitySchemes": {"login": {"type": "oauth2", "flows": flow}}},
        security=[{"login": []}],
    )
    settings = (
        f'[servers.row.openapi]\ndocument = "api.json"\nbase_url = "http://127.0.0.1:{peer.port}/"\n'
        '[servers.row.openapi.auth.login]\nclient_id = "a"\nclient_secret = "b"\n'
    )
    why = no_connection(trial.call(settings, "get"))
    peer.close()
    return why


def redirected(trial):
    """A public server whose redirect must not be followed; reached at its own address through `lo`."""
    found = re.search(r"Location: (\S+)", str(trial.row.get("note")))
    if not found or not trial.row.get("resolves_to"):
        raise NotUnderstood("no `Location:` in the note, or no address")
    url = urlsplit(trial.url)
    status = re.search(r"r?(30[1-8])", url.path)
    context, env = names.certificate(trial.world.root, url.hostname) if url.scheme == "https" else (None, {})
    port = url.port or (443 if context else 80)
    other = urlsplit(found[1]).hostname
    if other != url.hostname:
        trial.dns.more = {other: [ELSEWHERE]}
    peer = Peer(redirecting(int(status[1]) if status else 302, found[1]), address=("0.0.0.0", port), context=context)
    try:
        code, error, connections = trial.call(f'url = {toml(trial.url)}\ntype = "http"\n', env=env)
        asked = len(peer.requests)
    finally:
        peer.close()
        trial.dns.more = {}
    beyond = [found for found in connections if found not in [(address, port) for address in trial.targets()]]
    if beyond:
        return shown(beyond)
    if not isinstance(error, dict) or code == 0:
        return error if isinstance(error, str) else "the call succeeded"
    if not asked:
        return f"the server that redirects was not asked: {error}"
    return f"the redirect was followed {asked} times" if asked > 40 else None
