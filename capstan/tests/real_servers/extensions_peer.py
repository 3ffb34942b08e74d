"""A client made with FastMCP: reads the skills and pages that an endpoint shows, as JSON.

    python extensions_peer.py URL [METHOD]
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.skills import SkillsClientExtension
from mcp_types import Request, RequestParams, Result


class Params(RequestParams):
    query: str


class Search(Request[Params, str]):
    method: str = "example/search"
    params: Params


class Found(Result):
    found: str


async def main() -> None:
    url, wants_method = sys.argv[1], len(sys.argv) > 2
    async with Client(url, extensions=[SkillsClientExtension()]) as client:
        said = {"skills": [], "pages": [], "method": None}
        for skill in await client.list_skills():
            got = await client.get_skill(skill.uri)
            assert got == skill, (got, skill)
            for file in skill.resources:
                read = await client.read_resource(file.uri)
                assert str(read[0].uri) == file.uri, (read[0].uri, file.uri)
                said["skills"].append([skill.uri, file.uri, read[0].text])
        for tool in await client.list_tools():
            page = tool.meta["ui"]["resourceUri"]
            read = await client.read_resource(page)
            said["pages"].append([tool.name, page, read[0].text])
        if wants_method:
            request = Search(params=Params(query="x"))
            try:
                said["method"] = (await client.session.send_request(request, Found)).found
            except Exception as error:
                said["method"] = str(error)
        print(json.dumps(said))


asyncio.run(main())
