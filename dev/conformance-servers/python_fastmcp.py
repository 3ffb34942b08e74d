"""A conformance server on the Python package `fastmcp`, for both eras at one endpoint, on loopback and a free port."""

import mcp_types as types
import python_items as items
from fastmcp import Context, FastMCP
from fastmcp.prompts import Message
from fastmcp.tools import Tool

server = FastMCP("conformance-fastmcp", instructions=items.INSTRUCTIONS, version="1.0.0", dereference_schemas=False)
items.register(server, Context)
tool = items.described(server.tool, "tool")
items.add_prompts(server, Context, Message)


def json_schema_2020_12_tool() -> str:
    return "called"


schema_tool = Tool.from_function(json_schema_2020_12_tool, description="A tool with a schema of 2020-12")
schema_tool.parameters = items.INPUTS["json_schema_2020_12_tool"]
server.add_tool(schema_tool)


# What of the items that come and go is in the lists.
shown = set()


def dynamic_tool() -> str:
    return "dynamic"


def dynamic_prompt() -> str:
    return "dynamic"


@tool
async def test_trigger_tool_change(ctx: Context) -> str:
    if "tool" in shown:
        server.local_provider.remove_tool("dynamic_tool")
    else:
        tool(dynamic_tool)
    shown.symmetric_difference_update({"tool"})
    await ctx.send_notification(types.ToolListChangedNotification())
    return "changed"


@tool
async def test_trigger_prompt_change(ctx: Context) -> str:
    if "prompt" in shown:
        server.local_provider.remove_prompt("dynamic_prompt")
    else:
        items.described(server.prompt, "prompt")(dynamic_prompt)
    shown.symmetric_difference_update({"prompt"})
    await ctx.send_notification(types.PromptListChangedNotification())
    return "changed"


@server.completion
async def complete(ref, argument, context=None) -> list[str]:
    return [value for value in items.VALUES if value.startswith(argument.value)]


items.serve(server.http_app(event_store=items.Events(), retry_interval=100, host_origin_protection=True))
