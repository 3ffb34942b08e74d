"""A stand-in for the Messages API: answers a client with the steps of a plan, as a stream.

    model_api.py PLAN.json LOG.jsonl COMMAND…

Listens on a free port of 127.0.0.1, and runs a command that finds it in `ANTHROPIC_BASE_URL`. The plan is a list of steps: `{"tool": NAME,
"input": {…}}` calls a tool, `{"text": TEXT}` ends the conversation. The step follows from the
number of calls that the conversation has already. Requests without tools, by which clients name a
conversation, get a text. Each request is a line of the log: the names of the offered tools, and the
results of the calls.
"""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PLAN = json.load(open(sys.argv[1], encoding="utf-8"))
LOG = open(sys.argv[2], "a", encoding="utf-8")
LOCK = threading.Lock()


def blocks(body: dict, role: str, kind: str) -> list:
    found = []
    for message in body.get("messages", []):
        content = message["content"]
        if message["role"] == role and isinstance(content, list):
            found += [block for block in content if block.get("type") == kind]
    return found


def text_of(result: dict) -> str:
    content = result.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def step_for(body: dict) -> dict:
    if not body.get("tools"):
        return {"text": "A title"}
    calls = len(blocks(body, "assistant", "tool_use"))
    return PLAN[min(calls, len(PLAN) - 1)]


def events(body: dict, step: dict) -> list:
    """The events of a streamed message."""
    start = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "model": body.get("model", "stand-in"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    if "tool" in step:
        calls = len(blocks(body, "assistant", "tool_use"))
        block = {"type": "tool_use", "id": f"toolu_{calls}", "name": step["tool"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step["input"])}
        reason = "tool_use"
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": step["text"]}
        reason = "end_turn"
    end = {"stop_reason": reason, "stop_sequence": None}
    return [
        ("message_start", {"message": start}),
        ("content_block_start", {"index": 0, "content_block": block}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": end, "usage": {"output_tokens": 1}}),
        ("message_stop", {}),
    ]


def whole(body: dict, step: dict) -> dict:
    """The message for a client that does not stream."""
    message = events(body, step)[0][1]["message"]
    if "tool" in step:
        block = {"type": "tool_use", "id": "toolu_0", "name": step["tool"], "input": step["input"]}
        return {**message, "content": [block], "stop_reason": "tool_use"}
    return {**message, "content": [{"type": "text", "text": step["text"]}], "stop_reason": "end_turn"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer(200, b"", "application/json")

    def do_GET(self) -> None:
        self.answer(404, b'{"type":"error","error":{"type":"not_found_error","message":"none"}}')

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        body = json.loads(self.rfile.read(length) or b"{}")
        if self.path.split("?")[0].endswith("/count_tokens"):
            self.answer(200, b'{"input_tokens": 1}')
            return
        if not self.path.split("?")[0].endswith("/v1/messages"):
            self.do_GET()
            return
        results = blocks(body, "user", "tool_result")
        self.log(
            {
                "tools": [tool["name"] for tool in body.get("tools", [])],
                "results": [[bool(one.get("is_error")), text_of(one)] for one in results],
            }
        )
        step = step_for(body)
        if not body.get("stream"):
            self.answer(200, json.dumps(whole(body, step)).encode())
            return
        stream = ""
        for name, data in events(body, step):
            stream += f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"
        self.answer(200, stream.encode(), "text/event-stream")

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log(self, entry: dict) -> None:
        with LOCK:
            LOG.write(json.dumps(entry) + "\n")
            LOG.flush()

    def log_message(self, *_: object) -> None:
        pass


SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=SERVER.serve_forever, daemon=True).start()
ADDRESS = f"http://127.0.0.1:{SERVER.server_address[1]}"
sys.exit(subprocess.run(sys.argv[3:], env={**os.environ, "ANTHROPIC_BASE_URL": ADDRESS}).returncode)
