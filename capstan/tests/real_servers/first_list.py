"""A client made with the Python package `mcp` that lists once, as clients do that ignore changes.

    first_list.py MODE COMMAND…

Starts the command as a server over stdio. Writes the names of all tools, prompts and resources of its
first lists as JSON to stdout.
"""

import asyncio
import json
import os
import sys

import mcp
from mcp.client.stdio import StdioServerParameters


async def first_lists(mode: str, command: list[str]) -> dict:
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with mcp.Client(server, mode=mode) as client:
        tools = await client.list_tools()
        prompts = await client.list_prompts()
        resources = await client.list_resources()
        return {
            "protocol": client.protocol_version,
            "tools": [tool.name for tool in tools.tools],
            "prompts": [prompt.name for prompt in prompts.prompts],
            "resources": [str(resource.uri) for resource in resources.resources],
        }


def main() -> None:
    mode, *command = sys.argv[1:]
    print(json.dumps(asyncio.run(first_lists(mode, command))))


main()
