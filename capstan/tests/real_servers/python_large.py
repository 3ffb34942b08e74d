"""A server made with the Python package `mcp` whose answers do not say their length.

    python_large.py json      answers are JSON, in chunks without `Content-Length`
    python_large.py events    answers are events, after a notification of progress

Listens on a free port and says `listening on URL` on stderr. The package speaks both eras.
"""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

PIECE = 64 * 1024

server = MCPServer("python-large")


@server.tool()
async def large(size: int, ctx: Context) -> str:
    """Answers with so many letters."""
    await ctx.report_progress(1, 2)
    return "x" * size


@server.tool()
def small() -> str:
    """Answers with a word."""
    return "fine"


def without_length(app):
    """Sends every body in pieces, without the header that says its length."""

    async def run(scope, receive, send):
        async def send_in_pieces(message):
            if message["type"] == "http.response.start":
                headers = [pair for pair in message.get("headers", []) if pair[0].lower() != b"content-length"]
                message = {**message, "headers": headers}
            body = message.get("body", b"")
            while message["type"] == "http.response.body" and len(body) > PIECE:
                await send({"type": "http.response.body", "body": body[:PIECE], "more_body": True})
                body = body[PIECE:]
                message = {**message, "body": body}
            await send(message)

        await app(scope, receive, send_in_pieces)

    return run


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    app = without_length(server.streamable_http_app(json_response=sys.argv[1] == "json"))
    print(f"listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


main()
