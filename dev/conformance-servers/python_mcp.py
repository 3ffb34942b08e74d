"""A conformance server on the Python package `mcp`, for both eras at one endpoint, on loopback and a free port."""

import mcp_types as types
import python_items as items
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage

server = MCPServer("conformance-mcp", instructions=items.INSTRUCTIONS, version="1.0.0")
items.register(server, Context)
tool = items.described(server.tool, "tool")
items.add_prompts(server, Context, lambda content: UserMessage(content=content))

watching = {}


def json_schema_2020_12_tool() -> str:
    return "called"


# The package makes schemas of functions only.
tool(json_schema_2020_12_tool)
server._tool_manager.get_tool("json_schema_2020_12_tool").parameters = items.INPUTS["json_schema_2020_12_tool"]


def dynamic_tool() -> str:
    return "dynamic"


def dynamic_prompt() -> str:
    return "dynamic"


@tool
async def test_trigger_tool_change(ctx: Context) -> str:
    if server._tool_manager.get_tool("dynamic_tool"):
        server.remove_tool("dynamic_tool")
    else:
        tool(dynamic_tool)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "changed"


@tool
async def test_trigger_prompt_change(ctx: Context) -> str:
    if server._prompt_manager.get_prompt("dynamic_prompt"):
        server.remove_prompt("dynamic_prompt")
    else:
        items.described(server.prompt, "prompt")(dynamic_prompt)
    await ctx.notify_prompts_changed()
    await ctx.session.send_prompt_list_changed()
    return "changed"


@tool
async def test_trigger_update(uri: str, ctx: Context) -> str:
    await ctx.notify_resource_updated(uri)
    for session in watching.get(uri, []):
        await session.send_resource_updated(uri)
    return f"{uri} changed"


@server.completion()
async def complete(ref, argument, context) -> types.Completion:
    values = [value for value in items.VALUES if value.startswith(argument.value)]
    return types.Completion(values=values, total=len(values), has_more=False)


async def set_level(ctx, params) -> types.EmptyResult:
    return types.EmptyResult()


async def subscribe(ctx, params) -> types.EmptyResult:
    watching.setdefault(str(params.uri), []).append(ctx.session)
    return types.EmptyResult()


async def unsubscribe(ctx, params) -> types.EmptyResult:
    watching.pop(str(params.uri), None)
    return types.EmptyResult()


# The high-level server has no words for these.
low_level = server._lowlevel_server
low_level.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
low_level.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
low_level.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)

items.serve(server.streamable_http_app(event_store=items.Events(), retry_interval=100))
