"""A client made with the Python package `mcp` that finds its tools by search.

    search_peer.py MODE URL

Reads what to do as JSON from stdin: queries, a tool to describe, tools to call. Writes what it saw
as JSON to stdout.
"""

import asyncio
import json
import sys

import mcp


def text_of(answer) -> str:
    return "".join(piece.text for piece in answer.content if piece.type == "text")


async def main(mode: str, url: str, plan: dict) -> dict:
    async with mcp.Client(url, mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search_tools", {"queries": plan["queries"]})
        described = await client.call_tool("describe_tool", {"name": plan["describe"]})
        answers = []
        for name, arguments in plan["calls"]:
            answer = await client.call_tool("call_tool", {"name": name, "arguments": arguments})
            structured = answer.structured_content
            answers.append({"error": answer.is_error, "text": text_of(answer), "structured": structured})
        unknown = "it was called"
        try:
            await client.call_tool("call_tool", {"name": "filesystem__made_up", "arguments": {}})
        except Exception as error:
            unknown = str(error)
        return {
            "tools": tools,
            "found": text_of(found),
            "described": text_of(described),
            "answers": answers,
            "unknown": unknown,
        }


print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2], json.load(sys.stdin)))))
