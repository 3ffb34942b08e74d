"""What the clients on Python's packages do with a server: the steps, and how a client answers questions.

TARGET in the environment is the URL of a server or a command as a JSON list, ERA is `auto` or `legacy`, PREFIX stands
before the names of tools and prompts, PLAN is JSON that names what to use. Writes to stdout a JSON object with what
was seen in each step.
"""

import asyncio
import json
import os
import traceback
import warnings

import mcp_types as types
from mcp.shared.exceptions import MCPError

warnings.simplefilter("ignore")
PLAN = json.loads(os.environ["PLAN"])
PREFIX = os.environ.get("PREFIX", "")
ERA = os.environ["ERA"]
# How long a message may take that belongs to no request.
PATIENCE = 5
# What was seen in each step.
SEEN = {}


def target() -> str | list[str]:
    given = os.environ["TARGET"]
    return json.loads(given) if given.startswith("[") else given


def plain(value):
    """As JSON has it."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.model_dump(by_alias=True, mode="json", exclude_none=True) if hasattr(value, "model_dump") else value


class Person:
    """Who is asked and told; notes everything."""

    def __init__(self) -> None:
        self.asked, self.told, self.logged = [], [], []
        self.news, self.questioned = asyncio.Event(), asyncio.Event()

    async def sample(self, context, params):
        self.asked.append(["sampling", plain(params)])
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="Paris"), model="model", stop_reason="endTurn"
        )

    async def elicit(self, context, params):
        self.asked.append(["elicitation", plain(params)])
        properties = params.requested_schema["properties"]
        content = {name: answer(schema) for name, schema in properties.items()}
        return types.ElicitResult(action="accept", content=content)

    async def roots(self, context):
        self.asked.append(["roots"])
        self.questioned.set()
        return types.ListRootsResult(roots=[types.Root(uri="file:///compared", name="compared")])

    async def log(self, params) -> None:
        self.logged.append(plain(params))

    async def hear(self, message) -> None:
        method = getattr(message, "method", "")
        if "list_changed" in method or "updated" in method:
            self.told.append([method, plain(message.params) or {}])
            self.news.set()

    async def wait(self) -> list:
        """What was told, or nothing after a while."""
        try:
            await asyncio.wait_for(self.news.wait(), PATIENCE)
        except TimeoutError:
            pass
        self.news.clear()
        told, self.told = self.told, []
        return told


def answer(schema: dict):
    """The first value that fits, as a person would fill in a form."""
    choices = schema.get("enum") or [option["const"] for option in schema.get("oneOf", [])]
    if choices:
        return choices[0]
    return {"boolean": True, "integer": 1, "number": 1, "array": []}.get(schema.get("type"), "Ada")


class Steps:
    """Runs steps and keeps what was seen in each, errors too."""

    def __init__(self, person: Person) -> None:
        self.person = person

    async def run(self, name: str, step) -> None:
        self.person.asked.clear()
        self.person.logged.clear()
        try:
            seen = await asyncio.wait_for(step(), 30)
        except MCPError as error:
            seen = {"error": plain(error.error)}
        except Exception as error:
            seen = {"failed": f"{type(error).__name__}: {error}"}
        SEEN[name] = seen


async def play(client, person: Person) -> None:
    """All steps, with a client that both packages can give."""
    steps = Steps(person)
    run = steps.run

    async def asked(what):
        result = await client.call(*PLAN[what])
        # A server may ask for roots at any time; that is another step.
        return {"asked": [asked for asked in person.asked if asked[0] == what], "result": result}

    async def progress():
        events = []

        async def told(done, total, message):
            events.append([done, total, message])

        result = await client.call(*PLAN["progress"], progress=told)
        # Some packages drop a last message that comes in one piece with the answer.
        return {"events": events[:2], "result": result}

    async def logging():
        result = await client.call(*PLAN["logging"])
        return {"logged": list(person.logged), "result": result}

    async def large():
        result = await client.call(*PLAN["large"])
        return {"isError": result.get("isError", False), "length": len(result["content"][0]["text"])}

    async def outside():
        try:
            await asyncio.wait_for(person.questioned.wait(), PATIENCE)
        except TimeoutError:
            return "not asked"
        return ["roots"]

    # Before anything is listed: a client that only listens.
    if "changes" in PLAN:
        await run("list_changed", lambda: client.listen(PLAN["changes"]))
    await run("about", client.about)
    for what in ["tools", "resources", "resource_templates", "prompts"]:
        await run(what, lambda: client.list(what))
    await run("progress", progress)
    # Capstan starts a server with its first call, and the server asks when it has started.
    if "outside" in PLAN:
        await run("roots_outside_a_call", outside)
    if "logging" in PLAN:
        await run("logging", logging)
    for what in ["elicitation", "sampling", "roots"]:
        await run(what, lambda: asked(what))
    await run("completion", lambda: client.complete(*PLAN["completion"]))
    await run("resource", lambda: client.read(PLAN["resource"]))
    await run("prompt", lambda: client.prompt(*PLAN["prompt"]))
    if "skills" in PLAN and hasattr(client, "skills"):
        await run("skills", client.skills)
    await run("no_such_tool", lambda: client.call("no_such_tool", {}))
    await run("no_such_resource", lambda: client.read(PLAN["no_such_resource"]))
    if "watched" in PLAN:
        await run("subscription", lambda: client.watch(*PLAN["watched"]))
    if "large" in PLAN:
        await run("large", large)
        await run("after_large", lambda: client.call(*PLAN["simple"]))


def main(run) -> None:
    try:
        asyncio.run(run())
    except BaseException as error:
        # A connection that breaks takes the client with it; the steps until then count.
        SEEN["broken"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    print(json.dumps(SEEN), flush=True)
    # A transport that does not end in time must not keep the rest waiting.
    os._exit(0)
