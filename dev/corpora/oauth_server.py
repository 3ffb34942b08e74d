"""Rows of oauth_attacks.jsonl: attacks on `capstan serve --http` as authorization and resource server.

Each row is driven over HTTP with a browser that is a few lines below. Rows about the client that logs in
to servers, and those that need a document at a public address, are skipped; they have tests of their own.
"""

import base64
import hashlib
import hmac
import http.client
import http.server
import json
import re
import socket
import subprocess
import threading
import time
from urllib.parse import parse_qs, urlencode, urlsplit

from common import Gateway, MODERN, NotUnderstood, World, request_body

VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
CALLBACK = "http://127.0.0.1:33418/cb"
PASSWORD = "correct horse battery staple"
SECRET = "s" * 48
CONFIG = """
[gateway.auth]
providers = ["oauth_as"]
[gateway.auth.oauth_as]
redirect_uri_allowlist = ["http://127.0.0.1/*", "http://localhost/*", "https://app.example/*"]
scopes_supported = ["read", "write"]
"""


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.text = response.read().decode("utf-8", "replace")

    def json(self):
        return json.loads(self.text)

    def to(self, name):
        """A parameter of the address that the browser is sent to."""
        query = parse_qs(urlsplit(self.headers.get("location", "")).query)
        return query.get(name, [None])[0]


class Site:
    """A gateway with its own authorization server and one local user."""

    def __init__(self, binary, more="", rest=""):
        # The issuer is part of the configuration, so the port must be known before the start.
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        issuer = f'issuer_url = "http://127.0.0.1:{self.port}"\n'
        self.world = World(binary, CONFIG + issuer + more + rest, {"CAPSTAN_KEYRING": "off"})
        subprocess.run(
            [self.world.binary, "user", "add", "ann", "--role", "dev"], input=PASSWORD.encode(), check=True,
            env=self.world.env, cwd=self.world.root, capture_output=True, timeout=60,
        )
        self.gateway = Gateway(self.world, at=f"127.0.0.1:{self.port}")

    def close(self):
        self.gateway.close()
        self.world.close()

    def send(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, body, headers or {})
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def form(self, path, pairs):
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.send("POST", path, urlencode(pairs), kind)

    def register(self, uris=(CALLBACK,), **more):
        body = json.dumps({"redirect_uris": list(uris), **more})
        return self.send("POST", "/register", body, {"Content-Type": "application/json"})

    def client(self, uris=(CALLBACK,)):
        return self.register(uris).json()["client_id"]

    def page(self, query, headers=None):
        return self.send("GET", f"/authorize?{query}", headers=headers)

    def agree(self, query, decision="allow", headers=None, page=None):
        """Answers the page as a browser does."""
        page = page or self.page(query)
        if page.status != 200:
            return page
        token = re.search(r'name="form_token" value="([^"]+)"', page.text)[1]
        pairs = {"form_token": token, "decision": decision, "user": "ann", "password": PASSWORD}
        kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
        cookie = {"Cookie": page.headers["set-cookie"].split(";")[0]}
        return self.send("POST", f"/authorize?{query}", urlencode(pairs), {**kind, **cookie, **(headers or {})})

    def code(self, client):
        return self.agree(asked(client)).to("code")

    def redeem(self, client, code, **changed):
        pairs = {"grant_type": "authorization_code", "client_id": client, "code": code,
                 "redirect_uri": CALLBACK, "code_verifier": VERIFIER, **changed}
        return self.form("/token", pairs)

    def tokens(self, client=None):
        client = client or self.client()
        return client, self.redeem(client, self.code(client)).json()

    def refresh(self, client, token, **more):
        return self.form("/token", {"grant_type": "refresh_token", "client_id": client, "refresh_token": token, **more})

    def call(self, token=None, path="/mcp"):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return self.send("POST", path, request_body("tools/list"), headers)


def asked(client, **changed):
    pairs = {"response_type": "code", "client_id": client, "redirect_uri": CALLBACK, "code_challenge": CHALLENGE,
             "code_challenge_method": "S256", "state": "st", **changed}
    return urlencode([(key, value) for key, value in pairs.items() if value is not None])


def refused_page(answer, status=400):
    if answer.status != status:
        return f"status {answer.status}"
    return "it redirects" if answer.headers.get("location") else ""


def is_status(answer, *statuses):
    return "" if answer.status in statuses else f"status {answer.status}: {answer.text[:120]}"


def encode(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(part):
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def hs256(header, claims, secret):
    text = f"{encode(header)}.{encode(claims)}"
    return f"{text}.{encode(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


def at_once(count, work):
    """Runs the same work in many threads at the same time; the results."""
    gate, results = threading.Barrier(count), []

    def run():
        gate.wait()
        results.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return results


class Listener:
    """A port that counts connections."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port, self.seen = self.socket.getsockname()[1], 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                self.socket.accept()[0].close()
            except OSError:
                return
            self.seen += 1


def answering(documents):
    """A web server with these documents; its origin, and the requests that it got."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            self.do_GET()

        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            seen.append(f"{self.requestline}\n{self.headers}\n{body.decode('utf-8', 'replace')}")
            found = documents(self, body)
            self.send_response(200 if found is not None else 404)
            text = json.dumps(found or {}).encode()
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", seen


# === rows about the authorization server ===

def redirect_mismatch(site):
    return refused_page(site.page(asked(site.client(), redirect_uri=CALLBACK + "/x")))


def redirect_prefix(site):
    return refused_page(site.page(asked(site.client(), redirect_uri="http://127.0.0.1:33418.evil.test/cb")))


def redirect_port(site):
    page = site.page(asked(site.client(), redirect_uri="http://127.0.0.1:50000/cb"))
    if page.status != 200 or "127.0.0.1:50000" not in page.text:
        return f"status {page.status}, or the page does not show host and port"
    public = "https://app.example/cb"
    client = site.client([public])
    return refused_page(site.page(asked(client, redirect_uri="https://app.example:50000/cb")))


def redirect_fragment(site):
    return is_status(site.register([CALLBACK + "#frag"]), 400)


def redirect_public(site):
    return is_status(site.register(["http://evil.test/cb"]), 400)


def redirect_twice(site):
    query = asked(site.client()) + "&" + urlencode({"redirect_uri": "https://app.example/cb"})
    return refused_page(site.page(query))


def redirect_path(site):
    client = site.client()
    for uri in ("http://127.0.0.1:33418/CB", CALLBACK + "/", "http://127.0.0.1:33418/%63b", "http://127.0.0.1:33418/%2e/cb"):
        why = refused_page(site.page(asked(client, redirect_uri=uri)))
        if why:
            return f"{uri}: {why}"
    return ""


def no_pkce(site):
    return refused_page(site.page(asked(site.client(), code_challenge=None)))


def plain_pkce(site):
    return refused_page(site.page(asked(site.client(), code_challenge_method="plain")))


def code_race(site):
    client = site.client()
    code = site.code(client)
    statuses = at_once(20, lambda: site.redeem(client, code).status)
    return "" if statuses.count(200) == 1 else f"{statuses.count(200)} succeeded"


def code_other_redirect(site):
    client = site.client()
    return is_status(site.redeem(client, site.code(client), redirect_uri="http://127.0.0.1:33419/cb"), 400)


def code_expired(site):
    short = Site(site.world.binary, 'authorization_code_ttl = "1s"\n')
    try:
        client = short.client()
        code = short.code(client)
        time.sleep(2.5)
        return is_status(short.redeem(client, code), 400)
    finally:
        short.close()


def resource_missing(site):
    _, tokens = site.tokens()
    audience = decoded(tokens["access_token"].split(".")[1])["aud"]
    return "" if audience in (f"http://127.0.0.1:{site.port}/mcp", [f"http://127.0.0.1:{site.port}/mcp"]) else f"{audience}"


def resource_other(site):
    answer = site.page(asked(site.client(), resource="https://other.test/mcp"))
    if answer.status in (302, 303):
        return "" if answer.to("error") == "invalid_target" else answer.headers["location"]
    return refused_page(answer) or ("" if "invalid_target" in answer.text else "no invalid_target")


def refresh_reuse(site):
    client, tokens = site.tokens()
    second = site.refresh(client, tokens["refresh_token"]).json()
    # Within ten seconds, a repeated use is taken for a race of one client.
    time.sleep(11)
    why = is_status(site.refresh(client, tokens["refresh_token"]), 400)
    why = why or is_status(site.refresh(client, second["refresh_token"]), 400)
    logged = site.world.run(["audit", "--json"])[1]
    return why or ("" if b"auth/reuse" in logged or b"reuse" in logged else "nothing in the audit log")


def refresh_race(site):
    client, tokens = site.tokens()
    answers = at_once(2, lambda: site.refresh(client, tokens["refresh_token"]))
    good = [answer for answer in answers if answer.status == 200]
    if len(good) != 1:
        return f"{len(good)} succeeded"
    return is_status(site.refresh(client, good[0].json()["refresh_token"]), 200)


def scope_escalation(site):
    client = site.client()
    code = site.agree(asked(client, scope="read")).to("code")
    tokens = site.redeem(client, code).json()
    answer = site.refresh(client, tokens["refresh_token"], scope="read write")
    return is_status(answer, 400) or ("" if answer.json()["error"] == "invalid_scope" else answer.text)


def asks_again(site):
    first, second = site.client(), site.client()
    page = site.page(asked(first))
    site.agree(asked(first), page=page)
    cookie = {"Cookie": page.headers["set-cookie"].split(";")[0], "Sec-Fetch-Site": "cross-site"}
    for client in (second, first):
        answer = site.page(asked(client), cookie)
        if answer.status != 200 or answer.headers.get("location") or "<form" not in answer.text:
            return f"status {answer.status} without a question"
    return ""


def consent_frame(site):
    page = site.page(asked(site.client()))
    policy = page.headers.get("content-security-policy", "")
    if page.headers.get("x-frame-options") != "DENY" and "frame-ancestors 'none'" not in policy:
        return "it can be framed"
    return "inline scripts may run" if "unsafe-inline" in policy or "<script" in page.text else ""


def consent_injection(site):
    body = site.register(client_name="<script>alert(1)</script>", logo_uri="javascript:alert(2)").json()
    text = site.page(asked(body["client_id"])).text
    return "it is not escaped" if "<script" in text or "javascript:" in text or "<img" in text else ""


def huge_registration(site):
    answer = site.register([f"http://127.0.0.1/{number}" for number in range(10000)])
    why = is_status(answer, 400, 413)
    return why or is_status(site.register([CALLBACK], padding="x" * (1 << 20)), 400, 413)


def document_inside(site):
    listener = Listener()
    urls = [f"https://127.0.0.1:{listener.port}/x.json", "https://169.254.169.254/x", f"http://127.0.0.1:{listener.port}/x.json",
            f"https://localhost:{listener.port}/x.json"]
    for url in urls:
        why = refused_page(site.page(asked(url)))
        if why:
            return f"{url}: {why}"
    return f"{listener.seen} connections" if listener.seen else ""


def issuer_is_fixed(site):
    good = site.send("GET", "/.well-known/oauth-authorization-server").json()["issuer"]
    other = site.send("GET", "/.well-known/oauth-authorization-server", headers={"Host": "evil.test"})
    if other.status == 200 and other.json()["issuer"] != good:
        return "the issuer follows the host"
    return "" if "evil.test" not in other.text else "the host is repeated"


def issuer_in_answers(site):
    issuer = site.send("GET", "/.well-known/oauth-authorization-server").json()
    if issuer.get("authorization_response_iss_parameter_supported") is not True:
        return "the metadata has no flag"
    client = site.client()
    for decision in ("allow", "deny"):
        answer = site.agree(asked(client), decision)
        if answer.to("iss") != issuer["issuer"]:
            return f"{decision}: iss is {answer.to('iss')}"
    return ""


def no_referrer(site):
    page = site.page(asked(site.client()))
    return "" if page.headers.get("referrer-policy") == "no-referrer" else "another policy"


def other_browser(site):
    origin = []

    def documents(_request, _body):
        at = origin[0]
        return {"issuer": at, "authorization_endpoint": f"{at}/auth", "token_endpoint": f"{at}/token", "jwks_uri": f"{at}/keys"}

    at, seen = answering(documents)
    origin.append(at)
    table = f'[gateway.auth.oauth_as.upstream]\nissuer = "{at}"\nclient_id = "gateway"\n'
    upstream = Site(site.world.binary, "", table)
    try:
        client = upstream.client()
        sent = upstream.agree(asked(client))
        if not sent.headers.get("location", "").startswith(f"{at}/auth"):
            return f"the user is not sent to the provider: {sent.status} {sent.text[:200]}"
        back = f"/authorize/callback?{urlencode({'state': sent.to('state'), 'code': 'c'})}"
        victim = upstream.page(asked(client)).headers["set-cookie"].split(";")[0]
        for headers in ({}, {"Cookie": victim}):
            why = refused_page(upstream.send("GET", back, headers=headers))
            if why:
                return why
        return "the code was exchanged" if any("/token" in one.splitlines()[0] for one in seen) else ""
    finally:
        upstream.close()


# === rows about the resource server ===

def algorithm_confusion(site):
    _, tokens = site.tokens()
    header, claims, _ = tokens["access_token"].split(".")
    key = site.send("GET", "/.well-known/jwks.json").json()["keys"][0]
    number = [base64.urlsafe_b64decode(key[part] + "=" * (-len(key[part]) % 4)) for part in "xy"]
    point = b"\x04" + b"".join(number)
    # SubjectPublicKeyInfo of a key on P-256.
    der = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + point
    pem = b"-----BEGIN PUBLIC KEY-----\n" + base64.encodebytes(der).replace(b"\n", b"") + b"\n-----END PUBLIC KEY-----\n"
    for secret in (point, der, pem, json.dumps(key).encode(), b""):
        for alg in ("HS256", "none"):
            forged = hs256({**decoded(header), "alg": alg}, decoded(claims), secret)
            for token in (forged, forged.rsplit(".", 1)[0] + "."):
                why = is_status(site.call(token), 401, 429)
                if why:
                    return f"{alg}: {why}"
    return ""


def with_secret(site, attacks):
    """Drives forged tokens at a gateway whose signing secret is known; a right one must pass."""
    own = Site(site.world.binary, f'jwt_secret = "{SECRET}"\n')
    try:
        _, tokens = own.tokens()
        header, claims, _ = [decoded(part) if number < 2 else part for number, part in enumerate(tokens["access_token"].split("."))]
        again = hs256(header, claims, SECRET.encode())
        if own.call(again).status != 200:
            return "a token with the right signature is refused, so that the row shows nothing"
        for name, change in attacks:
            changed_header, changed_claims = dict(header), dict(claims)
            change(changed_header, changed_claims)
            changed_claims["jti"] = name
            why = is_status(own.call(hs256(changed_header, changed_claims, SECRET.encode())), 401)
            if why:
                return f"{name}: {why}"
        return ""
    finally:
        own.close()


def other_audience(site):
    return with_secret(site, [
        ("another resource", lambda _, claims: claims.update(aud="https://other.test/mcp")),
        ("a longer host", lambda _, claims: claims.update(aud=claims["aud"] + ".evil.test")),
        ("none", lambda _, claims: claims.pop("aud")),
    ])


def out_of_time(site):
    now = int(time.time())
    return with_secret(site, [
        ("expired", lambda _, claims: claims.update(exp=now - 120)),
        ("early", lambda _, claims: claims.update(nbf=now + 600)),
        ("no end", lambda _, claims: claims.pop("exp")),
    ])


def other_type(site):
    return with_secret(site, [
        ("JWT", lambda header, _: header.update(typ="JWT")),
        ("none", lambda header, _: header.pop("typ", None)),
    ])


def token_in_query(site):
    _, tokens = site.tokens()
    token = tokens["access_token"]
    why = is_status(site.call(path=f"/mcp?access_token={token}"), 401)
    files = [path for path in site.world.root.rglob("*") if path.is_file()]
    logged = any(token.encode() in path.read_bytes() for path in files)
    return why or ("it is written to a file" if logged else "")


def passthrough(site):
    def server(_request, body):
        message = json.loads(body or b"{}")
        results = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}},
            "tools/list": {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
        }
        found = results.get(message.get("method"))
        if found is None:
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32601, "message": "no"}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": found}

    at, seen = answering(server)
    own = Site(site.world.binary, "", f'[permissions]\nallow = ["*"]\n[servers.far]\ntype = "http"\nurl = "{at}/mcp"\n')
    try:
        _, tokens = own.tokens()
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "far__do",
                   "Authorization": f"Bearer {tokens['access_token']}"}
        answer = own.send("POST", "/mcp", request_body("tools/call", {"name": "far__do", "arguments": {}}), headers)
        if "done" not in answer.text:
            return f"the call did not reach the server: {answer.text[:200]}"
        return "the token was sent on" if any(tokens["access_token"] in one for one in seen) else ""
    finally:
        own.close()


ROWS = {
    "oauth-redir-mismatch": redirect_mismatch,
    "oauth-redir-prefix": redirect_prefix,
    "oauth-redir-port-loopback": redirect_port,
    "oauth-redir-fragment": redirect_fragment,
    "oauth-redir-http-public": redirect_public,
    "oauth-redir-dup": redirect_twice,
    "oauth-redir-case-path": redirect_path,
    "oauth-no-pkce": no_pkce,
    "oauth-pkce-plain": plain_pkce,
    "oauth-code-replay-race": code_race,
    "oauth-code-other-redirect": code_other_redirect,
    "oauth-code-expired": code_expired,
    "oauth-resource-missing": resource_missing,
    "oauth-resource-other": resource_other,
    "oauth-refresh-reuse": refresh_reuse,
    "oauth-refresh-race": refresh_race,
    "oauth-scope-escalate": scope_escalation,
    "oauth-consent-missing": asks_again,
    "oauth-consent-frame": consent_frame,
    "oauth-consent-xss": consent_injection,
    "oauth-consent-cookie-clientid": asks_again,
    "oauth-consent-cross-site-silent": asks_again,
    "oauth-callback-other-browser": other_browser,
    "oauth-dcr-huge": huge_registration,
    "oauth-cimd-ssrf": document_inside,
    "oauth-metadata-issuer": issuer_is_fixed,
    "oauth-iss-param": issuer_in_answers,
    "oauth-authz-code-in-referer": no_referrer,
    "oauth-alg-confusion": algorithm_confusion,
    "oauth-aud-other": other_audience,
    "oauth-exp-past": out_of_time,
    "oauth-typ": other_type,
    "oauth-token-in-query": token_in_query,
    "oauth-passthrough": passthrough,
}

# Their documents would have to be at a public address.
PUBLIC = {"oauth-cimd-large", "oauth-cimd-redirect-not-listed"}


def run(rows, binary, report):
    site = None
    for row in rows:
        if row.get("role_under_test", "").startswith("client"):
            report.add(row, "http", "skipped", "about logins to servers")
        elif row["_label"] in PUBLIC:
            report.add(row, "http", "skipped", "needs a public address")
        else:
            # A new gateway for each row: attempts are limited, and rows must not share a limit.
            site = Site(binary)
            report.judge(row, "http", lambda: judge(row, site))
            site.close()


def judge(row, site):
    test = ROWS.get(row["_label"])
    if test is None:
        raise NotUnderstood("no attack for this id")
    why = test(site)
    return why or ("" if site.gateway.alive() else "the gateway ended")
