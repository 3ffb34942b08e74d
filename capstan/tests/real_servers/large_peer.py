"""A client made with the Python package `mcp` that calls `large` with several sizes, then `small`.

    large_peer.py legacy|2026-07-28 URL SIZE...

Everything is one session. Writes the answers as JSON to stdout: whether it is an error, the length of the
text and its beginning.
"""

import asyncio
import json
import sys

import mcp


async def ignore(done, total, message) -> None:
    """Asks for progress, so that a server with events begins its stream early."""


async def use(mode: str, url: str, sizes: list[int]) -> list:
    answers = []
    calls = [("large", {"size": size}) for size in sizes] + [("small", {})]
    async with mcp.Client(url, mode=mode) as client:
        for tool, arguments in calls:
            called = await client.call_tool(tool, arguments, progress_callback=ignore)
            text = "".join(piece.text for piece in called.content if piece.type == "text")
            answers.append([bool(called.is_error), len(text), text[:200]])
    return answers


print(json.dumps(asyncio.run(use(sys.argv[1], sys.argv[2], [int(size) for size in sys.argv[3:]]))))
