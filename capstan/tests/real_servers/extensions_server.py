"""A server made with FastMCP: a skill, a tool with a page, and a method of its own extension.

Every such server has the same URIs. Its answers contain its name.

    python extensions_server.py NAME FOLDER
"""

import sys
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.server.extensions import MethodBinding, ServerExtension
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension
from mcp_types import RequestParams, Result

NAME, FOLDER = sys.argv[1], Path(sys.argv[2])
PAGE = "ui://clock/app.html"


class SearchParams(RequestParams):
    query: str


class SearchResult(Result):
    found: str


class SearchExtension(ServerExtension):
    identifier = "com.example/search"

    def methods(self):
        return (
            MethodBinding(
                method="example/search", params_type=SearchParams, handler=self._search
            ),
        )

    async def _search(self, context, params):
        return SearchResult(found=f"{params.query} of {NAME}")


mcp = FastMCP(NAME, instructions=f"Use {NAME}.\n")
skills = SkillsDirectoryProvider(roots=FOLDER, experimental_skills=True)
mcp.add_provider(skills)
mcp.add_extension(SkillsExtension(providers=[skills]))
mcp.add_extension(SearchExtension())


@mcp.tool(meta={"ui": {"resourceUri": PAGE}})
def get_time() -> str:
    return f"time of {NAME}"


@mcp.resource(PAGE, mime_type="text/html;profile=mcp-app")
def page() -> str:
    return f"page of {NAME}"


mcp.run(transport="stdio", show_banner=False)
