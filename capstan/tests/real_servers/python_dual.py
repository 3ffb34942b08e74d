"""A server made with the Python package `mcp` that asks its client in the middle of a call.

    python_dual.py          streamable HTTP on a free port; says `listening on URL` on stderr
    python_dual.py stdio    stdio

The package speaks both eras. The tools use the requests that only the legacy era has.
"""

import socket
import sys

import mcp_types as types
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("python-dual")


class Who(BaseModel):
    name: str


@server.tool()
async def ask(ctx: Context) -> str:
    """Asks who is there."""
    answer = await ctx.elicit("Who is there?", schema=Who)
    return f"{answer.action} {answer.data.name if answer.action == 'accept' else ''}"


@server.tool()
async def sample(ctx: Context) -> str:
    """Asks a model."""
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="hello"))
    made = await ctx.session.create_message(messages=[said], max_tokens=10)
    return made.content.text


@server.tool()
async def talk(ctx: Context) -> str:
    """Logs four lines."""
    for line in range(4):
        await ctx.info(f"line {line}")
    return "done"


def main() -> None:
    if sys.argv[1:] == ["stdio"]:
        server.run("stdio")
        return
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    app = server.streamable_http_app()
    print(f"listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


main()
