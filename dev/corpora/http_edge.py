"""Rows of http_edge.jsonl: raw requests to `capstan serve --http --demo`."""

import re
import time

from common import Gateway, MODERN, NotUnderstood, World, exchange, initialize_body, request_body

# A stalled request must be answered within this time (seconds), and some seconds for a busy machine.
STALL = 35


class Request:
    """One request in pieces that a row can change."""

    def __init__(self, port, modern):
        self.line = "POST /mcp HTTP/1.1"
        self.body = request_body("tools/list") if modern else initialize_body()
        self.headers = [
            ("Host", f"127.0.0.1:{port}"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ]
        if modern:
            self.headers += [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")]
        self.chunked = self.stall = False
        self.newline = "\r\n"

    def set(self, name, value):
        self.headers = [header for header in self.headers if header[0].lower() != name.lower()]
        self.headers.append((name, value))

    def bytes(self):
        body = self.body
        names = [name.lower() for name, _ in self.headers]
        headers = list(self.headers)
        if self.chunked:
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        elif "content-length" not in names and body:
            headers.append(("Content-Length", str(len(body))))
        head = self.line + self.newline + "".join(f"{name}: {value}{self.newline}" for name, value in headers)
        return (head + self.newline).encode() + (b"" if self.stall else body)


def run(rows, binary, report):
    world = World(binary)
    gateway = Gateway(world, args=["--demo"])
    for row in rows:
        for modern in (False, True):
            feed = MODERN if modern else "2025-11-25"
            if (modern and stalls(row)) or (not modern and about_modern(row)):
                continue
            report.judge(row, feed, lambda: judge(row, gateway, modern))
            if not gateway.alive():
                gateway = Gateway(world, args=["--demo"])
    gateway.close()
    world.close()


def about_modern(row):
    """Whether a row is about the modern revision only."""
    expected = str(row.get("expected", ""))
    return "modern" in expected or "-32020" in expected


def stalls(row):
    return "stall" in str(row.get("request", {}).get("raw", ""))


def judge(row, gateway, modern):
    accepts = expectation(row)
    wrong = []
    for name, request in requests(row, gateway.port, modern):
        began = time.monotonic()
        response = exchange(gateway.port, request.bytes(), STALL if request.stall else 10, linger=0.3)
        why = accepts(response, time.monotonic() - began)
        if why:
            wrong.append(f"{name}: {why}" if name else why)
    good = exchange(gateway.port, Request(gateway.port, True).bytes())
    if good.status != 200:
        wrong.append(f"a good request is answered with {good.status} afterwards")
    return "; ".join(wrong)


def requests(row, port, modern):
    """The requests that a row describes, each with a name to tell alternatives apart."""
    given = row.get("request")
    if not isinstance(given, dict) or not given:
        raise NotUnderstood("no `request`")
    if "raw" in given:
        return described(str(given["raw"]).replace("PORT", str(port)), port, modern)
    request = Request(port, modern)
    for name, value in given.items():
        values = value if isinstance(value, list) else [value]
        request.set(name, str(values[0]).replace("PORT", str(port)))
        request.headers += [(name, str(more).replace("PORT", str(port))) for more in values[1:]]
    return [("", request)]


def described(text, port, modern):
    """Reads a description such as `Upgrade: h2c / websocket` or `GET /mcp`."""
    plain = re.sub(r"\([^)]*\)", "", text).strip()
    stall = bool(re.search(r"\bstall", plain))
    plain = re.sub(r",?\s*(?:then|and)?\s*stalls?\b.*", "", plain).strip()
    body = re.search(r"\s+with (?:a )?(\S+/\S+) body", plain)
    if body:
        plain = plain[: body.start()] + plain[body.end():]
    found = []

    def add(name, change):
        request = Request(port, modern)
        change(request)
        request.stall = stall
        if body:
            params = {"name": "time__now", "arguments": {}} if body[1] == "tools/call" else {}
            request.body = request_body(body[1], params, modern=modern)
            if body[1] == "tools/call" and modern:
                request.set("Mcp-Name", "time__now")
        found.append((name, request))

    line = re.fullmatch(r"([A-Z]+) (/\S*)(?: HTTP/[\d.]+)?", plain)
    many = re.fullmatch(r"(\d[\d,]*)\s+headers?", plain)
    sized = re.fullmatch(r"(\d+)\s*(bytes?|KiB|MiB|kB|MB)\s+(header|body|path|url)s?", plain, re.I)
    twice = re.fullmatch(r"(?:two|double|duplicate)\s+([\w-]+)(?:\s+headers?)?", plain, re.I)
    none = re.fullmatch(r"(no|missing|empty)\s+([\w-]+)(?:\s+header)?", plain, re.I)
    if line:
        def method(request):
            request.line = f"{line[1]} {line[2]} HTTP/1.1"
            if line[1] in ("GET", "HEAD", "DELETE", "OPTIONS"):
                request.body = b""
        add("", method)
    elif plain.startswith("/"):
        for path in re.split(r",\s*", plain):
            def get(request):
                request.line, request.body = f"GET {path} HTTP/1.1", b""
            add(path, get)
    elif many:
        count = int(many[1].replace(",", ""))
        add("", lambda request: request.headers.extend((f"X-Filler-{n}", "x") for n in range(count)))
    elif sized:
        scale = {"b": 1, "k": 1024, "m": 1 << 20}[sized[2][0].lower()]
        add("", lambda request: enlarge(request, sized[3].lower(), int(sized[1]) * scale))
    elif twice:
        def double(request):
            value = dict((name.lower(), value) for name, value in request.headers).get(twice[1].lower(), "x")
            if twice[1].lower() == "content-length":
                value = str(len(request.body))
                request.headers.append((twice[1], value))
            request.headers.append((twice[1], value + "0" if value.isdigit() else value))
        add("", double)
    elif none:
        def drop(request):
            request.headers = [h for h in request.headers if h[0].lower() != none[2].lower()]
            if none[1].lower() == "empty":
                request.headers.append((none[2], ""))
        add("", drop)
    elif re.search(r"bare LF", plain, re.I):
        def lf(request):
            request.newline = "\n"
        add("", lf)
    elif re.search(r"chunk[- ]size", plain, re.I):
        def overflow(request):
            request.set("Transfer-Encoding", "chunked")
            request.headers = [h for h in request.headers if h[0] != "Content-Length"]
            request.chunked, request.body = False, b"FFFFFFFFFFFFFFFFF\r\n" + request.body
            request.bytes = lambda: Request.bytes(request).replace(b"Content-Length", b"X-Length")
        add("", overflow)
    elif re.match(r"[\w-]+:", plain):
        fields = [part.strip() for part in re.split(r"\s\+\s", plain)]
        name, _, value = fields[0].partition(":")
        for choice in re.split(r"\s/\s", value.strip()):
            add(choice if " / " in value else "", lambda request: header_fields(request, name, choice, fields[1:]))
    else:
        raise NotUnderstood(f"request.raw = {text!r}")
    return found


def header_fields(request, name, value, more):
    request.set(name, value)
    if name.lower() == "transfer-encoding":
        request.chunked = True
    if name.lower() == "upgrade":
        request.set("Connection", "Upgrade" + (", HTTP2-Settings" if value == "h2c" else ""))
        if value == "h2c":
            request.set("HTTP2-Settings", "AAMAAABkAAQAAP__")
        else:
            request.set("Sec-WebSocket-Version", "13")
            request.set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
    for field in more:
        other, _, text = field.partition(":")
        request.set(other, text.strip() or (str(len(request.body)) if other.lower() == "content-length" else "x"))


def enlarge(request, part, size):
    if part == "header":
        request.set("X-Filler", "x" * size)
    elif part == "body":
        request.body = request_body("tools/list", {"filler": "x" * size})
    else:
        request.line = f"POST /{'x' * size} HTTP/1.1"


def expectation(row):
    """A function that says what is wrong with a response, by the words of `expected`."""
    expected = str(row.get("expected", ""))
    statuses = {int(status) for status in re.findall(r"(?<![\d-])[1-5]\d\d(?!\d)", expected)}
    code = re.search(r"-32\d{3}", expected)
    within = re.search(r"<=?\s*(\d+)\s*s", expected)
    carried = "ignored" in expected
    wins = "TE wins" in expected
    hidden = re.search(r"no \w+ route", expected)
    if not statuses and not carried and not hidden:
        raise NotUnderstood(f"expected = {expected!r}")

    def accepts(response, took):
        if response.status is None and 400 in statuses and response.closed:
            return "closed without a response"
        if hidden:
            return None if response.status in (400, 401, 403, 404, 405) else f"status {response.status}"
        if (carried and response.status == 200) or (wins and response.status == 200 and response.closed):
            return None
        if response.status not in statuses:
            return f"status {response.status}, expected {expected!r}"
        if code and int(code[0]) not in [m.get("error", {}).get("code") for m in response.messages()]:
            return f"no error {code[0]} in {response.body[:100]!r}"
        if within and took > int(within[1]) + 2:
            return f"took {took:.0f} s"
        return None

    return accepts
