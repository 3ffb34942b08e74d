"""A client made with the Python package `mcp` that can be asked everything.

    eras_peer.py legacy|2026-07-28 URL
    eras_peer.py legacy|2026-07-28 COMMAND ARGUMENT...

Lists the tools, calls `ask`, `sample` and `talk` without setting a log level, and writes what it saw as
JSON to stdout.
"""

import asyncio
import json
import sys

import mcp
import mcp_types as types
from mcp.client.stdio import StdioServerParameters, stdio_client


async def answer(context, params) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "ann"})


async def sample(context, params) -> types.CreateMessageResult:
    text = types.TextContent(type="text", text="hi")
    return types.CreateMessageResult(role="assistant", content=text, model="m")


async def use(mode: str, where: list[str]) -> dict:
    heard = []

    async def hear(params) -> None:
        heard.append(params.data)

    target = where[0]
    if not target.startswith("http"):
        target = stdio_client(StdioServerParameters(command=target, args=where[1:]))
    client = mcp.Client(
        target,
        mode=mode,
        elicitation_callback=answer,
        sampling_callback=sample,
        logging_callback=hear,
    )
    async with client:
        listed = await client.list_tools()
        answers = {}
        for tool in ["ask", "sample", "talk"]:
            try:
                called = await client.call_tool(tool, {})
            except mcp.MCPError as error:
                answers[tool] = [error.code, error.message]
                continue
            text = "".join(piece.text for piece in called.content if piece.type == "text")
            answers[tool] = [bool(called.is_error), text]
        return {
            "protocol": client.protocol_version,
            "tools": sorted(tool.name for tool in listed.tools),
            "answers": answers,
            "heard": heard,
        }


print(json.dumps(asyncio.run(use(sys.argv[1], sys.argv[2:]))))
