"""Rows of sse_malformed.jsonl: event streams that a bad server sends, over both HTTP transports."""

import base64
import json
import os
import pty
import re
import select
import subprocess
import time

from common import Gateway, MEMORY, NotUnderstood, World, exchange, request_body
from peers import Peer, open_stream, reply, respond

# How long a call may take, in seconds; `timeout` of the server is shorter.
PATIENCE = 20
TIMEOUT = 6


def run(rows, binary, report):
    for transport in (Streamable, Legacy):
        for row in rows:
            report.judge(row, transport.name, lambda: judge(row, binary, transport))


def judge(row, binary, transport):
    expected = str(row.get("expected", ""))
    wanted = expectation(expected)
    server = transport(row)
    world = World(
        binary,
        f'[permissions]\ndefault = "allow"\n[servers.bad]\nurl = "http://127.0.0.1:{server.peer.port}/mcp"\n'
        f'type = "{transport.kind}"\ntimeout = "{TIMEOUT}s"\n',
    )
    gateway = Gateway(world)
    try:
        call(gateway.port, {"good": 1})
        before, began = gateway.peak(), time.monotonic()
        body = call(gateway.port, {})
        took = time.monotonic() - began
        why = wanted(server, body, took)
        if not why and not gateway.alive():
            why = "the gateway ended"
        if not why and "bounded memory" in expected and gateway.peak() - before > MEMORY:
            why = f"the peak memory grew by {(gateway.peak() - before) // 1024} MiB"
        if not why and "reconnect" in expected:
            why = reconnects(server)
        if not why and b"good" not in call(gateway.port, {"good": 1}):
            why = "a good call fails afterwards"
        if not why and "terminal" in expected:
            why = on_terminal(world)
        return why
    finally:
        gateway.close()
        server.close()
        world.close()


def call(port, arguments):
    """The body of the answer to a call of the gateway, or nothing when none came in time."""
    body = request_body("tools/call", {"name": "bad__tool", "arguments": arguments})
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: bad__tool\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return exchange(port, head.encode() + body, PATIENCE).body


def on_terminal(world):
    """Runs the call on a pseudo-terminal and looks for raw control characters of the answer."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [world.binary, "call", "bad__tool"], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**world.env, "TERM": "xterm", "NO_COLOR": "1"}, cwd=world.root,
    )
    os.close(theirs)
    shown, until = b"", time.monotonic() + PATIENCE
    while time.monotonic() < until and select.select([ours], [], [], until - time.monotonic())[0]:
        try:
            more = os.read(ours, 65536)
        except OSError:
            break
        if not more:
            break
        shown += more
    child.kill()
    child.wait()
    os.close(ours)
    raw = any(control in shown for control in (b"\x1b]", b"\x07", b"\x1b[2J"))
    return f"the terminal got {shown[-200:]!r}" if raw else None


def reconnects(server):
    """Counts the requests within three seconds after the stream ended."""
    time.sleep(3)
    gets = [at for at, method, *_ in server.peer.requests if method == "GET"]
    close = [b - a for a, b in zip(gets, gets[1:]) if b - a < 0.9]
    return f"{len(close)} reconnects came in less than a second" if len(close) > 1 else None


def expectation(expected):
    """A function that says what is wrong with the answer to the call."""

    def delivered(server, body, took):
        messages = [json.loads(body)] if body.startswith(b"{") else []
        result = messages[0].get("result", {}) if messages else {}
        if "content" not in result or result.get("isError"):
            return f"not delivered: {body[:200]!r}"
        sent = re.search(rb'"content":(\[.*?\])\}', server.stream(0))
        return None if sent and sent[1] in body else f"not byte-exact: {body[:200]!r}"

    def refused(server, body, took):
        if not body:
            return f"no answer within {PATIENCE} s"
        return None if b'"isError":true' in body or b'"error"' in body else f"delivered: {body[:200]!r}"

    def failed_early(server, body, took):
        if took > TIMEOUT - 1:
            return f"failed only after {took:.1f} s: {body[:160]!r}"
        return refused(server, body, took)

    def limited(server, body, took):
        why = failed_early(server, body, took)
        until = time.monotonic() + 3
        while not why and server.sent_all is None and time.monotonic() < until:
            time.sleep(0.05)
        return why or ("the connection was not closed" if server.sent_all is not False else None)

    def either(server, body, took):
        return None if body else f"no answer within {PATIENCE} s"

    for word, test in (
        ("not delivered", refused),
        ("limit error", limited),
        ("not hang", failed_early),
        ("reconnect", refused),
        ("error or", either),
        ("request fails", failed_early),
        ("error at EOF", failed_early),
        ("id ignored", delivered),
        ("delivered", delivered),
    ):
        if word in expected:
            return test
    raise NotUnderstood(f"expected = {expected!r}")


class Bad:
    """A server whose answer to a call is the stream of a row."""

    def __init__(self, row):
        self.row = row
        self.sent_all = None
        self.pieces(0)
        self.peer = Peer(self.answer, modern=self.modern)

    def stream(self, id):
        return b"".join(self.pieces(id)) if "huge" not in self.row["_label"] else b""

    def pieces(self, id):
        """The stream in pieces, with the id of the request in place of 1."""
        result = '{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[]}}' % id
        if self.row.get("b64") is not None:
            data = base64.b64decode(self.row["b64"])
            return [re.sub(rb'":("?)1("?),', rb'":\g<1>%d\g<2>,' % id, data)]
        label = self.row["_label"]
        if "comment" in label:
            return [b": x\n" * 50_000] * 40 + [f"data: {result}\n\n".encode()]
        if re.search(r"huge|long|large|big", label):
            return [b"data: "] + [b"x" * (1 << 20)] * 400
        if re.search(r"flood|many", label):
            return [b"event: x\n" * 50_000] * 20 + [f"\ndata: {result}\n\n".encode()]
        raise NotUnderstood("no bytes, and the id does not say how to make them")

    def write(self, out, id):
        # A byte order mark belongs to the beginning of a stream, which is over in the older transport.
        mark = b"" if self.modern else b"\xef\xbb\xbf"
        try:
            for piece in self.pieces(id):
                piece = piece.removeprefix(mark)
                out.write(piece)
                out.flush()
            self.sent_all = True
        except OSError:
            self.sent_all = False

    def close(self):
        self.peer.close()


def is_row(message):
    """Whether a message is the call that the stream of the row answers."""
    if message is None or message.get("method") != "tools/call":
        return False
    return "good" not in (message["params"].get("arguments") or {})


class Streamable(Bad):
    name, kind, modern = "streamable http", "http", True

    def answer(self, handler, message):
        if not is_row(message):
            return False
        open_stream(handler)
        self.write(handler.wfile, message["id"])
        return True


class Legacy(Bad):
    """The older transport: answers come on the stream of the GET."""

    name, kind, modern = "legacy sse", "sse", False

    def answer(self, handler, message):
        if message is None:
            open_stream(handler)
            # Before the endpoint is named: a message may come as soon as it is known.
            self.out, self.open = handler.wfile, True
            handler.wfile.write(b"event: endpoint\ndata: /messages\n\n")
            handler.wfile.flush()
            while self.open:
                time.sleep(0.02)
            return True
        reply(handler, 202, b"")
        handler.wfile.flush()
        if "id" in message and is_row(message):
            self.write(self.out, message["id"])
            # The stream ends with the row where an answer is not to come.
            self.open = bool(re.search(r"(?<!not )\bdelivered\b|id ignored", self.row["expected"]))
        elif "id" in message:
            said = json.dumps(respond(message, modern=False))
            try:
                self.out.write(f"event: message\ndata: {said}\n\n".encode())
                self.out.flush()
            except OSError:
                pass
        return True

    def close(self):
        self.open = False
        super().close()
