"""Clients made with the Python packages `mcp` and `fastmcp`, which use a gateway as people would.

    gateway_peer.py mcp MODE URL
    gateway_peer.py fastmcp http|sse URL
    gateway_peer.py mcp MODE COMMAND ARGUMENT…

The last form starts a server, and only lists its tools.

Reads what to do as JSON from stdin: tools to call, a resource to read and a prompt to get. Writes
what it saw as JSON to stdout.
"""

import asyncio
import json
import os
import sys

import fastmcp
import mcp
from fastmcp.client.transports import SSETransport, StreamableHttpTransport


async def with_mcp(mode: str, url: str, plan: dict) -> dict:
    async with mcp.Client(url, mode=mode) as client:
        tools, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            tools += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        answers = [await client.call_tool(name, arguments) for name, arguments in plan["calls"]]
        read = await client.read_resource(plan["resource"])
        prompt = await client.get_prompt(*plan["prompt"])
        return {
            "protocol": client.protocol_version,
            "tools": tools,
            "answers": [[answer.is_error, text_of(answer.content)] for answer in answers],
            "resource": read.contents[0].text,
            "prompt": prompt.messages[0].content.text,
        }


async def with_fastmcp(transport: str, url: str, plan: dict) -> dict:
    way = {"http": StreamableHttpTransport, "sse": SSETransport}[transport]
    async with fastmcp.Client(way(url)) as client:
        tools = [tool.name for tool in await client.list_tools()]
        calls = plan["calls"]
        answers = [await client.call_tool(*call, raise_on_error=False) for call in calls]
        read = await client.read_resource(plan["resource"])
        prompt = await client.get_prompt(*plan["prompt"])
        return {
            "protocol": client.protocol_version,
            "tools": tools,
            "answers": [[answer.is_error, text_of(answer.content)] for answer in answers],
            "resource": read[0].text,
            "prompt": prompt.messages[0].content.text,
        }


def text_of(content: list) -> str:
    return "".join(piece.text for piece in content if piece.type == "text")


async def listed(mode: str, words: list) -> dict:
    start = mcp.StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
    async with mcp.Client(start, mode=mode) as client:
        return {"tools": [tool.name for tool in (await client.list_tools()).tools]}


def main() -> None:
    package, way, url, *rest = sys.argv[1:]
    if rest:
        print(json.dumps(asyncio.run(listed(way, [url, *rest]))))
        return
    use = {"mcp": with_mcp, "fastmcp": with_fastmcp}[package]
    print(json.dumps(asyncio.run(use(way, url, json.load(sys.stdin)))))


main()
