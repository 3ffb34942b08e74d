"""An OAuth client on the Python package `fastmcp`: registers, signs in, and calls a tool. See python_mcp.py.

It opens the browser itself, by the variable BROWSER.
"""

import asyncio
import json
import os

from fastmcp import Client
from fastmcp.client.auth import OAuth


async def main() -> None:
    async with Client(os.environ["TARGET"], auth=OAuth(client_name="FastMCP")) as client:
        result = await client.call_tool(os.environ["TOOL"], {})
        print(json.dumps({"error": bool(result.is_error)}))


asyncio.run(main())
