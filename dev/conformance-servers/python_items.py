"""The tools, resources and prompts of the conformance servers on Python's packages.

Both packages take functions with the same decorators. A context comes by the type of an argument, which is why
`register` gets that type.
"""

import asyncio
import base64
import json
import socket
import sys
from pathlib import Path
from typing import Annotated

import mcp_types as types
import uvicorn
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.shared.exceptions import MCPError
from pydantic import Field

ITEMS = json.loads((Path(__file__).parent / "items.json").read_text(encoding="utf-8"))
FORMS, INPUTS = ITEMS["forms"], ITEMS["inputs"]
PAUSE = 0.02
MISSING_CAPABILITY = -32021
VALUES = ["paris", "park", "party"]
INSTRUCTIONS = "Offers what the conformance suite looks for."


def text(said: str) -> types.TextContent:
    return types.TextContent(type="text", text=said)


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=ITEMS["image"], mime_type="image/png")


def embedded(uri: str, kind: str, said: str) -> types.EmbeddedResource:
    resource = types.TextResourceContents(uri=uri, mime_type=kind, text=said)
    return types.EmbeddedResource(type="resource", resource=resource)


def sampling(prompt: str, tokens: int) -> types.CreateMessageRequestParams:
    messages = [types.SamplingMessage(role="user", content=text(prompt))]
    return types.CreateMessageRequestParams(messages=messages, max_tokens=tokens)


def sample(prompt: str, tokens: int) -> types.CreateMessageRequest:
    return types.CreateMessageRequest(params=sampling(prompt, tokens))


def form(message: str, schema: str) -> types.ElicitRequest:
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=FORMS[schema]))


def user_name() -> types.ElicitRequest:
    return form("What is your name?", "name")


def required(state: str | None = None, **questions) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=questions, request_state=state)


def accepted(ctx, key: str, field: str) -> str | None:
    """The field of a form that was filled in."""
    answer = (ctx.input_responses or {}).get(key)
    return answer.content.get(field) if isinstance(answer, types.ElicitResult) and answer.content else None


def declared(ctx, kind: str) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and getattr(capabilities, kind) is not None


def described(add, kind: str):
    """The decorator that adds an item, with a description."""

    def decorate(function):
        return add(description=f"The {kind} {function.__name__}, for tests")(function)

    return decorate


def register(server, Context) -> None:
    """Adds everything to a server whose contexts have this type."""
    add_tools(server, Context)
    add_questions(server, Context)
    add_rounds(server, Context)
    add_resources(server)


def add_tools(server, Context) -> None:
    tool = described(server.tool, "tool")

    @tool
    def test_simple_text() -> str:
        return "This is a simple text response for testing."

    @tool
    def test_image_content() -> list[types.ImageContent]:
        return [image()]

    @tool
    def test_audio_content() -> list[types.AudioContent]:
        return [types.AudioContent(type="audio", data=ITEMS["audio"], mime_type="audio/wav")]

    @tool
    def test_embedded_resource() -> list[types.EmbeddedResource]:
        return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]

    @tool
    def test_multiple_content_types() -> list[types.TextContent | types.ImageContent | types.EmbeddedResource]:
        mixed = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
        return [text("Multiple content types test:"), image(), mixed]

    @tool
    def test_error_handling() -> str:
        raise RuntimeError("This tool intentionally returns an error for testing")

    @tool
    async def test_tool_with_logging(ctx: Context) -> str:
        for message in ["Tool execution started", "Tool processing data", "Tool execution completed"]:
            await ctx.info(message)
            await asyncio.sleep(PAUSE)
        return "Tool with logging executed successfully"

    @tool
    async def test_logging_tool(ctx: Context) -> str:
        await ctx.info("the logging tool runs")
        return "logged"

    @tool
    async def test_tool_with_progress(ctx: Context) -> str:
        for done in [0, 50, 100]:
            await ctx.report_progress(done, 100, f"{done} of 100")
            await asyncio.sleep(PAUSE)
        return "Tool with progress executed successfully"

    @tool
    async def test_reconnection(ctx: Context) -> str:
        await ctx.close_sse_stream()
        await asyncio.sleep(0.1)
        return "Reconnection test completed"

    @tool
    async def test_missing_capability(ctx: Context) -> str:
        if declared(ctx, "sampling"):
            return "the client can sample"
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(code=MISSING_CAPABILITY, message="the client cannot sample", data=needed)

    @tool
    def test_large_text(size: int) -> str:
        return "x" * size

    @tool
    def test_custom_header(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
        priority: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Priority"})] = 0,
        query: str = "",
    ) -> str:
        return json.dumps([region, priority, query])


def add_questions(server, Context) -> None:
    """Tools that ask by requests of their own, which only the legacy era has."""
    tool = described(server.tool, "tool")

    async def elicit(ctx, message: str, schema: str) -> str:
        answer = await ctx.session.elicit_form(message, FORMS[schema], related_request_id=ctx.request_id)
        return f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content or {})}"

    @tool
    async def test_sampling(prompt: str, ctx: Context) -> str:
        asked = sampling(prompt, 100)
        answer = await ctx.session.create_message(
            messages=asked.messages, max_tokens=asked.max_tokens, related_request_id=ctx.request_id
        )
        return f"LLM response: {answer.content.text}"

    @tool
    async def test_elicitation(message: str, ctx: Context) -> str:
        return await elicit(ctx, message, "response")

    @tool
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        return await elicit(ctx, "Please review", "defaults")

    @tool
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        return await elicit(ctx, "Please choose", "enums")

    @tool
    async def test_roots(ctx: Context) -> str:
        answer = await ctx.session.list_roots()
        return json.dumps([str(root.uri) for root in answer.roots])


def add_rounds(server, Context) -> None:
    """Tools that ask by results, which only the modern era has."""
    tool = described(server.tool, "tool")

    @tool
    async def test_input_required_result_elicitation(ctx: Context) -> str | types.InputRequiredResult:
        name = accepted(ctx, "user_name", "name")
        return f"Hello, {name}!" if name else required(user_name=user_name())

    @tool
    async def test_input_required_result_sampling(ctx: Context) -> str | types.InputRequiredResult:
        answer = (ctx.input_responses or {}).get("capital_question")
        if answer is not None:
            return f"Model said: {answer.content.text}"
        return required(capital_question=sample("What is the capital of France?", 100))

    @tool
    async def test_input_required_result_list_roots(ctx: Context) -> str | types.InputRequiredResult:
        answer = (ctx.input_responses or {}).get("client_roots")
        if answer is not None:
            return json.dumps([str(root.uri) for root in answer.roots])
        return required(client_roots=types.ListRootsRequest())

    def confirm(ctx, name: str) -> str | types.InputRequiredResult:
        is_over = "confirm" in (ctx.input_responses or {}) and ctx.request_state == name
        return "state-ok" if is_over else required(name, confirm=form("Please confirm", "ok"))

    @tool
    async def test_input_required_result_request_state(ctx: Context) -> str | types.InputRequiredResult:
        return confirm(ctx, "request_state")

    @tool
    async def test_input_required_result_tampered_state(ctx: Context) -> str | types.InputRequiredResult:
        return confirm(ctx, "tampered_state")

    @tool
    async def test_input_required_result_multiple_inputs(ctx: Context) -> str | types.InputRequiredResult:
        if {"user_name", "greeting", "client_roots"} <= (ctx.input_responses or {}).keys():
            return "All inputs received"
        greeting = sample("Generate a greeting", 50)
        roots = types.ListRootsRequest()
        return required("multiple_inputs", user_name=user_name(), greeting=greeting, client_roots=roots)

    @tool
    async def test_input_required_result_multi_round(ctx: Context) -> str | types.InputRequiredResult:
        step, name = json.loads(ctx.request_state or "[0, null]")
        if step == 2:
            return f"{name} likes {accepted(ctx, 'step2', 'color')}"
        if step == 1:
            state = json.dumps([2, accepted(ctx, "step1", "name")])
            return required(state, step2=form("Step 2: What is your favorite color?", "color"))
        return required(json.dumps([1, None]), step1=form("Step 1: What is your name?", "name"))

    @tool
    async def test_input_required_result_capabilities(ctx: Context) -> str | types.InputRequiredResult:
        if ctx.input_responses:
            return "answered"
        questions = {}
        if declared(ctx, "elicitation"):
            questions["user_name"] = user_name()
        if declared(ctx, "sampling"):
            questions["greeting"] = sample("Say hello", 50)
        return required(**questions) if questions else "the client cannot be asked"

    @tool
    async def test_streaming_elicitation(ctx: Context) -> str | types.InputRequiredResult:
        if ctx.input_responses:
            return "went on"
        await ctx.report_progress(1, 2, "about to ask")
        return required(go_on=form("Go on?", "ok"))


def add_resources(server) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        return base64.b64decode(ITEMS["image"])

    @server.resource("test://watched-resource", mime_type="text/plain")
    def watched_resource() -> str:
        return "Watched resource content"

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def add_prompts(server, Context, user) -> None:
    """Adds the prompts; `user` makes a message of a person from content."""
    prompt = described(server.prompt, "prompt")

    @prompt
    def test_simple_prompt() -> list:
        return [user(text("This is a simple prompt for testing."))]

    @prompt
    def test_prompt_with_arguments(arg1: str, arg2: str) -> list:
        return [user(text(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]

    @prompt
    def test_prompt_with_embedded_resource(resourceUri: str) -> list:
        resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [user(resource), user(text("Please process the embedded resource above."))]

    @prompt
    def test_prompt_with_image() -> list:
        return [user(image()), user(text("Please analyze the image above."))]

    @prompt
    async def test_input_required_result_prompt(ctx: Context) -> list | types.InputRequiredResult:
        context = accepted(ctx, "user_context", "context")
        if context is None:
            return required(user_context=form("Which context?", "context"))
        return [user(text(f"Use this context: {context}"))]


class Events(EventStore):
    """Events of the sessions, kept so that a stream can be resumed."""

    def __init__(self) -> None:
        self.all = []

    async def store_event(self, stream_id, message):
        self.all.append((stream_id, message))
        return str(len(self.all))

    async def replay_events_after(self, last_event_id, send_callback):
        last = int(last_event_id)
        stream = self.all[last - 1][0]
        for at, (stream_id, message) in enumerate(self.all[last:], last + 1):
            if stream_id == stream and message is not None:
                await send_callback(EventMessage(message, str(at)))
        return stream


def serve(app) -> None:
    """Serves on loopback and a free port, and says where on stderr."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    print(f"listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
