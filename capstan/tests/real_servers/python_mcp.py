"""A server made with the Python package `mcp`, over streamable HTTP on a free port.

Says `listening on URL` on stderr, and notes in the file in NOTES what happens to a call that waits
and which notifications arrive.
"""

import asyncio
import json
import os
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("python-mcp", instructions="Counts, waits and greets.")


def note(line: str) -> None:
    with open(os.environ["NOTES"], "a", encoding="utf-8") as notes:
        notes.write(line + "\n")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts and says how far it is."""
    for step in range(1, to + 1):
        await ctx.report_progress(step, to, f"step {step}")
    return f"counted to {to}"


@server.tool()
async def wait(ctx: Context) -> str:
    """Waits until it is cancelled."""
    note("waiting")
    await ctx.report_progress(1, 2, "waiting")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "nobody came"


@server.resource("notes://today")
def today() -> str:
    """What happened today."""
    return "nothing"


@server.resource("notes://{day}/{hour}")
def at(day: str, hour: str) -> str:
    """What happened then."""
    return f"{day} at {hour}"


@server.prompt()
def greet(name: str, style: str = "kind") -> str:
    """Greets somebody."""
    return f"Greet {name} in a {style} way."


class Listener:
    """Notes the notifications on their way in."""

    def __init__(self, app) -> None:
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        async def listen():
            message = await receive()
            if message.get("body"):
                told = json.loads(message["body"])
                if "id" not in told:
                    note(told["method"])
            return message

        await self.app(scope, listen, send)


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    app = server.streamable_http_app()
    print(f"listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(Listener(app), log_level="warning")).run(sockets=[listener])


main()
