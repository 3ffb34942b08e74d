"""A client on the Python package `fastmcp`. See python_steps.py."""

import fastmcp
import mcp_types as types
import python_steps as steps
from fastmcp.client.transports import StdioTransport
from fastmcp.skills import SkillsClientExtension
from python_steps import PREFIX, plain


class Client:
    def __init__(self, client: fastmcp.Client, person: steps.Person) -> None:
        self.client, self.person = client, person
        self.is_modern = client.protocol_version >= "2026"

    async def about(self):
        client = self.client
        about = [client.server_info, client.server_capabilities]
        return [client.protocol_version, *map(plain, about), client.instructions]

    async def list(self, what: str):
        return plain(await getattr(self.client, f"list_{what}_mcp")())

    async def call(self, tool: str, arguments: dict, progress=None):
        return plain(await self.client.call_tool_mcp(PREFIX + tool, arguments, progress_handler=progress))

    async def complete(self, prompt: str, argument: str, value: str):
        reference = types.PromptReference(type="ref/prompt", name=PREFIX + prompt)
        return plain(await self.client.complete_mcp(reference, {"name": argument, "value": value}))

    async def read(self, uri: str):
        return plain(await self.client.read_resource_mcp(uri))

    async def prompt(self, name: str, arguments: dict):
        return plain(await self.client.get_prompt_mcp(PREFIX + name, arguments))

    async def skills(self):
        return plain(await self.client.list_skills())

    async def listen(self, trigger: str):
        await self.call(trigger, {})
        return await self.person.wait()

    async def watch(self, uri: str, trigger: str):
        if self.is_modern:
            return "this package has no subscriptions in the modern era"
        await self.client.session.subscribe_resource(uri)
        await self.call(trigger, {"uri": uri})
        return await self.person.wait()


async def run() -> None:
    person, target = steps.Person(), steps.target()
    if isinstance(target, list):
        target = StdioTransport(target[0], target[1:])

    async def elicit(message, response_type, params, context):
        return await person.elicit(context, params)

    async def sample(messages, params, context):
        return await person.sample(context, params)

    async def roots(context):
        return (await person.roots(context)).roots

    async with fastmcp.Client(
        target,
        mode=steps.ERA,
        sampling_handler=sample,
        elicitation_handler=elicit,
        roots=roots,
        log_handler=person.log,
        message_handler=person.hear,
        extensions=[SkillsClientExtension()],
    ) as client:
        await steps.play(Client(client, person), person)


steps.main(run)
