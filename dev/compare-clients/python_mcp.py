"""A client on the Python package `mcp`. See python_steps.py."""

import mcp
import mcp_types as types
import python_steps as steps
from python_steps import PREFIX, plain


class Client:
    def __init__(self, client: mcp.Client, person: steps.Person) -> None:
        self.client, self.person = client, person
        self.is_modern = client.protocol_version >= "2026"

    async def about(self):
        client = self.client
        about = [client.server_info, client.server_capabilities]
        return [client.protocol_version, *map(plain, about), client.instructions]

    async def list(self, what: str):
        return plain(await getattr(self.client, f"list_{what}")())

    async def call(self, tool: str, arguments: dict, progress=None):
        return plain(await self.client.call_tool(PREFIX + tool, arguments, progress_callback=progress))

    async def complete(self, prompt: str, argument: str, value: str):
        reference = types.PromptReference(type="ref/prompt", name=PREFIX + prompt)
        return plain(await self.client.complete(reference, {"name": argument, "value": value}))

    async def read(self, uri: str):
        return plain(await self.client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict):
        return plain(await self.client.get_prompt(PREFIX + name, arguments))

    async def listen(self, trigger: str):
        if self.is_modern:
            async with self.client.listen(tools_list_changed=True):
                await self.call(trigger, {})
                return await self.person.wait()
        await self.call(trigger, {})
        return await self.person.wait()

    async def watch(self, uri: str, trigger: str):
        if self.is_modern:
            async with self.client.listen(resource_subscriptions=[uri]):
                await self.call(trigger, {"uri": uri})
                return await self.person.wait()
        await self.client.subscribe_resource(uri)
        await self.call(trigger, {"uri": uri})
        return await self.person.wait()


async def run() -> None:
    person, target = steps.Person(), steps.target()
    if isinstance(target, list):
        target = mcp.StdioServerParameters(command=target[0], args=target[1:])
    async with mcp.Client(
        target,
        mode=steps.ERA,
        sampling_callback=person.sample,
        elicitation_callback=person.elicit,
        list_roots_callback=person.roots,
        logging_callback=person.log,
        message_handler=person.hear,
        cache=None,
    ) as client:
        await steps.play(Client(client, person), person)


steps.main(run)
