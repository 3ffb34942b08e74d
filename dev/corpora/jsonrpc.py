"""Rows of jsonrpc_malformed.jsonl: sent by a client over HTTP and stdio, and by a server over stdio."""

import base64
import json
import re
import sys
import time

from common import Gateway, MEMORY, META, MODERN, NotUnderstood, World, exchange, initialize_body, request_body, toml
from peers import Peer, STDIO

PEER = "allowed"
LEGACY = "bad"


def run(rows, binary, report):
    upstream = Peer()
    world = World(binary)
    server = world.root / "server.py"
    server.write_text(STDIO)
    world.configure(
        '[permissions]\ndefault = "allow"\n'
        f'[servers.{PEER}]\nurl = "http://127.0.0.1:{upstream.port}/mcp"\ntype = "http"\n'
        f"[servers.{LEGACY}]\ncommand = {toml(sys.executable)}\n"
        f'args = ["-I", "-S", {toml(str(server))}]\ntimeout = "5s"\n'
    )
    for face in (HttpFace, StdioFace, OlderStdioFace, BadServer):
        front = face(world, upstream)
        for row in rows:
            try:
                data = content(row)
            except NotUnderstood as reason:
                report.add(row, front.name, "not-understood", str(reason))
                continue
            for feed in front.feeds(row, data):
                report.judge(row, feed, lambda: front.judge(row, data, feed))
                if not front.gateway.alive():
                    front.restart()
        front.gateway.close()
    upstream.close()
    world.close()


def content(row):
    """The bytes of a row; large ones are made again by the id."""
    if row.get("b64") is not None:
        return base64.b64decode(row["b64"])
    file = row["_folder"] / str(row.get("file"))
    if row.get("file") and file.is_file():
        return file.read_bytes()
    label = row["_label"]
    call = {"name": f"{PEER}__tool", "arguments": {}, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    size = re.search(r"(\d+)\s*(k|KiB|M|MiB)?(?![a-zA-Z0-9])", label)
    count = int(size[1]) * {"k": 1000, "KiB": 1 << 10, "M": 1000000, "MiB": 1 << 20, None: 1}[size[2]] if size else 0
    if "opening_arrays" in label or "open_array" in label:
        one = b'[{"":' if "object" in label else b"["
        named = re.search(r"\d{3,}", label)
        return one * (int(named[0]) if named else (row.get("size") or 250_000) // len(one))
    if count and re.search(r"deep|nest|depth", label):
        text = json.dumps(message)
        return text.replace('"arguments": {}', '"arguments": {"x": ' + "[" * count + "]" * count + "}").encode()
    if count and re.search(r"rpc-id\b", label) and "string" in label:
        message["id"] = "a" * count
    elif count and re.search(r"keys|wide", label):
        call["arguments"] = {f"k{number}": 0 for number in range(count)}
    elif count and re.search(r"name", label):
        call["name"] = "a" * count
    elif count and re.search(r"arg|string|body|huge|big", label):
        call["arguments"] = {"x": "a" * count}
    else:
        raise NotUnderstood("no bytes, and the id does not say how to make them")
    return json.dumps(message).encode()


def parsed(data):
    """The message, or None where Python cannot read it."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def is_json(data):
    try:
        json.loads(data)
    except RecursionError:
        pass
    except ValueError:
        return False
    return True


def choices(expected):
    """The alternatives of `expected`, each as its codes and its statuses."""
    found = []
    for words in re.split(r"\bor\b|/|;", expected):
        codes = {int(code) for code in re.findall(r"-32\d{3}", words)}
        statuses = {int(status) for status in re.findall(r"(?<![\d-])[2-5]\d\d(?!\d)", words)}
        if (codes or statuses) and "with id" not in words:
            found.append((codes, statuses))
    return found


def errors(messages):
    return [message["error"].get("code") for message in messages if isinstance(message.get("error"), dict)]


class Face:
    """One way by which rows reach the gateway."""

    http = True

    def __init__(self, world, upstream):
        self.world, self.upstream = world, upstream
        self.restart()

    def restart(self):
        self.gateway = Gateway(self.world, http=self.http)
        self.warm()

    def judge(self, row, data, feed):
        before, seen = self.gateway.peak(), len(self.upstream.requests)
        began = time.monotonic()
        why = self.try_row(row, data, feed, seen)
        took = time.monotonic() - began
        if not self.gateway.alive():
            return f"the gateway ended with {self.gateway.child.returncode}"
        problem = self.good()
        if problem:
            return f"afterwards: {problem}"
        grown = self.gateway.peak() - before
        if grown > MEMORY:
            return f"the peak memory grew by {grown // 1024} MiB"
        limit = re.search(r"<\s*(\d+)\s*s", str(row.get("expected")))
        # The gateway of a test build is slower by far than a release.
        if not why and limit and took > 10 * int(limit[1]):
            return f"took {took:.1f} s"
        return why

    def check(self, row, data, status, messages, seen):
        """Compares what came back with `expected`; `status` is None over stdio."""
        expected = str(row.get("expected", ""))
        codes = errors(messages)
        http = status is not None
        if row.get("layer") == "json":
            return self.check_json(expected, data, status, messages)
        if "forwarded" in expected or "header injection" in expected:
            return self.check_forwarded(expected, data, codes, seen)
        if "never tools/call" in expected:
            called = [r for r in self.upstream.requests[seen:] if b'"tools/call"' in r[4]]
            return "the tool was called" if called else (None if messages else "no answer")
        if any(self.fulfils(choice, data, status, codes) for choice in choices(expected)):
            return None
        if re.search(r"echoed|with id", expected):
            return self.check_echo(expected, data, messages, codes)
        if "MUST NOT send responses" in expected and not http:
            return None
        if "no body" in expected and not http:
            return f"answered with {messages[:1]}" if messages else None
        if not choices(expected):
            raise NotUnderstood(f"expected = {expected!r}")
        return f"status {status}, errors {codes}, expected {expected!r}"

    def fulfils(self, choice, data, status, codes):
        """Whether an answer has the status and the code of one alternative."""
        wanted, statuses = choice
        # Bytes that are no JSON are refused as such, whatever else is wrong with them.
        wanted = wanted | {-32700} if wanted and not is_json(data) else wanted
        if status is None and not wanted:
            return bool(codes) == (min(statuses) >= 400)
        return (not wanted or bool(wanted & set(codes))) and (status is None or not statuses or status in statuses)

    def check_json(self, expected, data, status, messages):
        codes = errors(messages)
        lines = [line for line in data.split(b"\n") if line.strip()]
        if "no crash" in expected:
            return None
        if status is None and not lines:
            return None
        if status is None and len(lines) > 1:
            # Over stdio each line is a message of its own.
            return None if codes and all(code in (-32700, -32600) for code in codes) else f"errors {codes}"
        if expected == "reject":
            right = -32700 in codes and (status is None or status == 400)
        elif expected == "parse-ok":
            right = bool(codes) and -32700 not in codes
        else:
            raise NotUnderstood(f"expected = {expected!r}")
        return None if right else f"status {status}, errors {codes}, expected {expected!r}"

    def check_echo(self, expected, data, messages, codes):
        sent = parsed(data)
        if any(message.get("id") == sent["id"] and type(message.get("id")) is type(sent["id"]) for message in messages):
            if "logs" in expected and b"\x1b[2J" in self.gateway.logged():
                return "the log has a raw escape sequence"
            return None
        return f"the id {str(sent['id'])[:40]!r} was not echoed, errors {codes}"

    def check_forwarded(self, expected, data, codes, seen):
        calls = [r for r in self.upstream.requests[seen:] if b'"tools/call"' in r[4]]
        if set(codes) & {int(code) for code in re.findall(r"-32\d{3}", expected)}:
            return None
        if not calls:
            return f"not forwarded, errors {codes}"
        _, _, _, headers, body = calls[-1]
        if "header" in expected:
            value = parsed(data)["params"]["arguments"]
            clean = {name.lower(): text for name, text in headers.items()}
            if "x-evil" in clean:
                return "the argument made a header"
            region = clean.get("mcp-param-region", "")
            wanted = base64.b64encode(next(iter(value.values())).encode()).decode()
            return None if wanted in region else f"the header is {region!r}"
        raw = re.search(rb'"arguments"\s*:\s*(\{[^}]*\})', data)
        return None if raw and raw[1] in body else f"the server got {body[:300]!r}"


class HttpFace(Face):
    name = "http"

    def warm(self):
        problem = self.good()
        if problem:
            raise SystemExit(f"error: the gateway does not answer a good call: {problem}")

    def good(self):
        body = request_body("tools/call", {"name": f"{PEER}__tool", "arguments": {}}, id=7)
        answer = self.post(body, {"Mcp-Method": "tools/call", "Mcp-Name": f"{PEER}__tool"})
        said = answer.messages()
        well = said and "content" in said[0].get("result", {}) and not said[0]["result"].get("isError")
        return None if well else f"{answer.status} {answer.body[:200]!r}"

    def post(self, body, headers, timeout=20):
        fields = {
            "Host": f"127.0.0.1:{self.gateway.port}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Content-Length": str(len(body)),
            **headers,
        }
        head = "POST /mcp HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items() if v is not None)
        return exchange(self.gateway.port, head.encode() + b"\r\n" + body, timeout)

    def feeds(self, row, data):
        if row.get("layer") != "json":
            return ["http"]
        # A value that is embedded in a request is judged where it cannot end the request early.
        return ["http", "http without headers", "http in params"]

    def try_row(self, row, data, feed, seen):
        headers = {"Mcp-Method": "tools/list"}
        message = parsed(data)
        if isinstance(message, list):
            message = message[0] if message and isinstance(message[0], dict) else {}
        if isinstance(message, dict) and isinstance(message.get("method"), str):
            headers["Mcp-Method"] = message["method"]
            params = message.get("params")
            name = params.get("name") if isinstance(params, dict) else None
            if isinstance(name, str) and name.isascii() and name.isprintable():
                headers["Mcp-Name"] = name
            given = params.get("arguments") if isinstance(params, dict) else None
            region = given.get("region") if isinstance(given, dict) else None
            if isinstance(region, str):
                headers["Mcp-Param-Region"] = f"=?base64?{base64.b64encode(region.encode()).decode()}?="
        elif row.get("layer") != "json":
            headers.update({"Mcp-Method": "tools/call", "Mcp-Name": f"{PEER}__tool"})
        override = re.search(r"when ([\w-]+): (\S+)", str(row.get("expected")))
        if override:
            headers[override[1]] = override[2]
        if feed == "http without headers":
            headers = {"MCP-Protocol-Version": None}
        if feed == "http in params":
            # The value stands last, so that an unfinished one cannot borrow what follows.
            before = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":' + json.dumps(META).encode()
            data = before + b',"x":' + data + b"}}"
        answer = self.post(data, headers)
        if answer.status is None:
            return "no response" + (", connection closed" if answer.closed else "")
        if feed == "http in params":
            return self.check_embedded(row, answer)
        return self.check(row, data, answer.status, answer.messages(), seen)

    def check_embedded(self, row, answer):
        expected, codes = str(row.get("expected")), errors(answer.messages())
        if "no crash" in expected:
            return None
        if expected == "reject":
            return None if -32700 in codes else f"status {answer.status}, errors {codes} for a value in params"
        return f"a good value in params is refused: {codes}" if -32700 in codes else None


class StdioFace(Face):
    name, http, modern = "stdio", False, True
    count = 0

    def warm(self):
        problem = self.good()
        if problem:
            raise SystemExit(f"error: the gateway does not answer a good call: {problem}")

    def good(self):
        wanted = self.sentinel()
        for line in self.gateway.lines(20):
            message = parsed(line)
            if isinstance(message, dict) and message.get("id") == wanted:
                return None if "result" in message else line[:200]
        return "no answer to a good request"

    def sentinel(self):
        StdioFace.count += 1
        wanted = f"sentinel-{StdioFace.count}"
        self.gateway.send(request_body("tools/list", id=wanted, modern=self.modern) + b"\n")
        return wanted

    def feeds(self, row, data):
        expected = str(row.get("expected"))
        if "over HTTP" in expected or re.search(r"when [\w-]+:", expected):
            return []
        if expected == "parse-ok" and b"\n" in data.strip(b"\n"):
            return []
        message = parsed(data)
        asks = isinstance(message, dict) and isinstance(message.get("method"), str) and "id" in message
        # A request names its revision itself, or belongs to a connection that began with `initialize`.
        if asks and self.modern != (MODERN.encode() in data):
            return []
        if not self.modern and (row.get("layer") == "json" or f"for {MODERN}" in expected):
            return []
        return [self.name]

    def try_row(self, row, data, feed, seen):
        self.gateway.send(data + b"\n")
        expected = str(row.get("expected"))
        quiet = "no body" in expected or "MUST NOT send" in expected or "no crash" in expected or not data.strip()
        wanted = self.sentinel()
        messages, through = [], False
        for line in self.gateway.lines(20):
            message = parsed(line)
            for one in message if isinstance(message, list) else [message]:
                if isinstance(one, dict) and one.get("id") == wanted:
                    through = True
                elif isinstance(one, dict) and "method" not in one:
                    messages.append(one)
            if through and (messages or quiet):
                break
        if not through:
            return "no answer to a good request that follows"
        return self.check(row, data, None, messages, seen)


class OlderStdioFace(StdioFace):
    """A connection over stdio that began with `initialize`."""

    name, modern = "stdio 2025-11-25", False

    def warm(self):
        self.gateway.send(initialize_body() + b"\n")
        self.gateway.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        super().warm()


class BadServer(HttpFace):
    """A server over stdio that sends the bytes of a row as a line before its answer."""

    name = "server"

    def feeds(self, row, data):
        return ["server"]

    def good(self):
        body = request_body("tools/call", {"name": f"{LEGACY}__tool", "arguments": {}}, id=7)
        answer = self.post(body, {"Mcp-Method": "tools/call", "Mcp-Name": f"{LEGACY}__tool"})
        return None if b'"good"' in answer.body else f"{answer.status} {answer.body[:200]!r}"

    def try_row(self, row, data, feed, seen):
        file = self.world.root / "row"
        file.write_bytes(data)
        body = request_body("tools/call", {"name": f"{LEGACY}__tool", "arguments": {"file": str(file)}}, id=7)
        answer = self.post(body, {"Mcp-Method": "tools/call", "Mcp-Name": f"{LEGACY}__tool"})
        if not answer.messages():
            return f"no answer to the call: {answer.status} {answer.body[:100]!r}"
        # A line that is no message does not take the place of the answer that follows.
        noise = row.get("layer") == "json" and b'"good"' not in answer.body
        return f"the answer after the line is lost: {answer.body[:200]!r}" if noise else None
