"""The report, a temporary home for the binary, and a running gateway."""

import json
import os
import queue
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict
from pathlib import Path

# The growth of the peak memory that one row may cause, in KiB.
MEMORY = 64 * 1024

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "attacks", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class NotUnderstood(Exception):
    """The runner cannot tell what a row asks for."""


class Report:
    """Collects one verdict per row and feed."""

    def __init__(self, verbose, as_json):
        self.verbose, self.as_json = verbose, as_json
        self.corpus = ""
        self.counts = OrderedDict()

    def add(self, row, feed, verdict, why=""):
        """Adds a verdict: passed, failed, skipped or not-understood."""
        group = row.get("class") or row.get("layer") or row.get("group") or "-"
        place = {"corpus": self.corpus, "class": group, "row": row["_label"], "feed": feed}
        self.put({**place, "verdict": verdict, "why": why})

    def put(self, entry):
        table = self.counts.setdefault((entry["corpus"], entry["class"]), {"passed": 0, "failed": 0, "skipped": 0})
        verdict = entry["verdict"]
        table["failed" if verdict == "not-understood" else verdict] += 1
        if self.as_json:
            print(json.dumps(entry), flush=True)
        elif verdict in ("failed", "not-understood") or self.verbose:
            line = f"{verdict:14} {entry['corpus']} {entry['row'][:90]!r} [{entry['feed']}] {entry['why']}"
            print(line[:400], flush=True)

    def judge(self, row, feed, test):
        """Runs a test that returns nothing, or the reason of a failure."""
        try:
            why = test()
        except NotUnderstood as reason:
            return self.add(row, feed, "not-understood", str(reason))
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, IndexError) as error:
            why = f"{type(error).__name__}: {error}"
        self.add(row, feed, "failed" if why else "passed", why or "")

    def finish(self):
        total = {"passed": 0, "failed": 0, "skipped": 0}
        if not self.as_json:
            print(f"\n{'corpus':9} {'class':28} {'passed':>7} {'failed':>7} {'skipped':>8}")
        for (corpus, group), counts in self.counts.items():
            for verdict, count in counts.items():
                total[verdict] += count
            if not self.as_json:
                print(f"{corpus:9} {group:28} {counts['passed']:7} {counts['failed']:7} {counts['skipped']:8}")
        print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped", flush=True)
        return 1 if total["failed"] else 0


class World:
    """A temporary home with a configuration, in which the binary runs."""

    def __init__(self, binary, config="", env=None):
        self.binary = str(binary)
        self.root = Path(tempfile.mkdtemp(prefix="attacks-"))
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.root), **(env or {})}
        self.configure(config)

    def configure(self, config):
        folder = self.root / ".config" / "capstan"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(config, "utf-8")

    def run(self, args, timeout=30, before=(), env=None, cwd=None):
        """Runs a command; returns exit code (None after the timeout), stdout and stderr."""
        child = subprocess.Popen(
            [*before, self.binary, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.env if env is None else env,
            cwd=cwd or self.root,
            start_new_session=True,
        )
        try:
            out, err = child.communicate(timeout=timeout)
            return child.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            return None, out, err

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)


class Gateway:
    """A running `capstan serve`, over HTTP or over stdio."""

    def __init__(self, world, http=True, args=(), at="127.0.0.1:0"):
        self.http = http
        command = [world.binary, "serve", *args] + (["--http", at] if http else [])
        self.log = (world.root / f"log-{'http' if http else 'stdio'}").open("w+b")
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if http else subprocess.PIPE,
            stdout=subprocess.DEVNULL if http else subprocess.PIPE,
            stderr=self.log,
            env=world.env,
            cwd=world.root,
            bufsize=0,
        )
        self.buffer = b""
        self.outgoing = queue.Queue()
        if not http:
            threading.Thread(target=self.write, daemon=True).start()
        self.port = self.await_port() if http else None

    def logged(self):
        self.log.flush()
        return Path(self.log.name).read_bytes()

    def await_port(self):
        until = time.monotonic() + 30
        while time.monotonic() < until and self.child.poll() is None:
            found = re.search(rb"listening on https?://[^\s:]+:(\d+)/", self.logged())
            if found:
                return int(found[1])
            time.sleep(0.02)
        raise OSError(f"the gateway did not start: {self.logged()[-300:]!r}")

    def alive(self):
        return self.child.poll() is None

    def peak(self):
        """The peak resident memory in KiB."""
        try:
            status = Path(f"/proc/{self.child.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(r"VmHWM:\s+(\d+)", status)
        return int(found[1]) if found else 0

    def send(self, data):
        """Queues bytes for stdin of a stdio gateway, so that no full pipe stops the runner."""
        self.outgoing.put(data)

    def write(self):
        while (data := self.outgoing.get()) is not None:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self.child.stdin.fileno(), view):]
            except (OSError, ValueError):
                return

    def lines(self, timeout):
        """Yields the lines of stdout until none came for the rest of the timeout."""
        until = time.monotonic() + timeout
        while True:
            while b"\n" in self.buffer:
                line, self.buffer = self.buffer.split(b"\n", 1)
                yield line
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.child.stdout], [], [], left)[0]:
                return
            more = os.read(self.child.stdout.fileno(), 1 << 20)
            if not more:
                return
            self.buffer += more

    def close(self):
        self.outgoing.put(None)
        self.child.kill()
        self.child.wait()
        self.log.close()


class Response:
    """An HTTP response as read from a raw socket."""

    def __init__(self, data, closed):
        self.closed = closed
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        found = re.match(r"HTTP/1\.\d (\d{3})", lines[0])
        self.status = int(found[1]) if found else None
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            body = unchunk(body)
        self.body = body

    def messages(self):
        """The JSON-RPC messages of the body, which is JSON or an event stream."""
        texts = [self.body]
        if "event-stream" in self.headers.get("content-type", ""):
            texts = [part[5:] for part in self.body.splitlines() if part.startswith(b"data:")]
        found = []
        for text in texts:
            try:
                value = json.loads(text)
            except ValueError:
                continue
            found += value if isinstance(value, list) else [value]
        return [message for message in found if isinstance(message, dict)]


def unchunk(body):
    whole = b""
    while b"\r\n" in body:
        size, _, body = body.partition(b"\r\n")
        try:
            length = int(size.split(b";")[0], 16)
        except ValueError:
            break
        whole += body[:length]
        body = body[length + 2:]
    return whole


def complete(data):
    """Whether these bytes are a whole response."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return False
    if re.match(rb"HTTP/1\.\d (1\d\d|204|304)", head):
        return not re.match(rb"HTTP/1\.\d 100", head)
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    if length:
        return len(body) >= int(length[1])
    if re.search(rb"(?i)\r\ntransfer-encoding: *chunked", head):
        return body.endswith(b"0\r\n\r\n")
    return False


def exchange(port, data, timeout=10.0, linger=0.0):
    """Sends raw bytes; reads one response, and `linger` seconds more to see whether the peer closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as peer:
        peer.settimeout(timeout)

        def write():
            try:
                peer.sendall(data)
            except OSError:
                pass

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        got, closed = b"", False
        until = time.monotonic() + timeout
        while time.monotonic() < until and not complete(got):
            peer.settimeout(max(0.01, until - time.monotonic()))
            try:
                more = peer.recv(1 << 16)
            except OSError as error:
                closed = isinstance(error, ConnectionError)
                break
            if not more:
                closed = True
                break
            got += more
            if got.startswith(b"HTTP/1.1 100 ") and b"\r\n\r\n" in got:
                got = got.partition(b"\r\n\r\n")[2]
        if linger and not closed:
            peer.settimeout(linger)
            try:
                closed = not peer.recv(1)
            except OSError as error:
                closed = isinstance(error, ConnectionError)
        return Response(got, closed)


def request_body(method="tools/list", params=None, id=1, modern=True):
    params = dict(params or {})
    if modern:
        params["_meta"] = META
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def initialize_body():
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "attacks", "version": "1"}}
    return request_body("initialize", params, modern=False)


def toml(value):
    """A basic string of TOML."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
