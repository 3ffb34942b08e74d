"""A client made with the Python package `mcp` that has roots, and changes them.

    roots_peer.py URL
    roots_peer.py COMMAND ARGUMENT...

Calls `get-roots-list` of the reference server until it shows each of the roots; writes the texts as JSON to
stdout.
"""

import asyncio
import json
import sys

import mcp
import mcp_types as types
from mcp.client.stdio import StdioServerParameters, stdio_client

ROOTS = ["file:///first", "file:///second"]


async def use(where: list[str]) -> list[str]:
    at = 0

    async def roots(context) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=ROOTS[at], name="root")])

    target = where[0]
    if not target.startswith("http"):
        target = stdio_client(StdioServerParameters(command=target, args=where[1:]))
    shown = []
    async with mcp.Client(target, mode="legacy", list_roots_callback=roots) as client:
        for at, root in enumerate(ROOTS):
            if at > 0:
                await client.send_roots_list_changed()
            text = ""
            while root not in text:
                called = await client.call_tool("get-roots-list", {})
                text = "".join(piece.text for piece in called.content if piece.type == "text")
                await asyncio.sleep(0.05)
            shown.append(text)
    return shown


print(json.dumps(asyncio.run(asyncio.wait_for(use(sys.argv[1:]), 60))))
