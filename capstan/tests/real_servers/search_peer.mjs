// A client on the TypeScript packages that finds its tools by search: `v1` is on
// `@modelcontextprotocol/sdk`, `v2` on `@modelcontextprotocol/client`.
//
//     search_peer.mjs VERSION URL
//
// SDK names the folder that the packages are installed in. Reads what to do as JSON from stdin:
// queries, a tool to describe, tools to call. Writes what it saw as JSON to stdout.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [version, url] = process.argv.slice(2);
const plan = JSON.parse(readFileSync(0, "utf8"));
const load = (name) => import(pathToFileURL(createRequire(`${process.env.SDK}/`).resolve(name)));
const isV1 = version === "v1";
const { Client } = await load(isV1 ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StreamableHTTPClientTransport } = await load(
  isV1 ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client",
);

const client = new Client({ name: "search-peer", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const call = (name, args) => client.callTool({ name, arguments: args });
const textOf = (answer) => answer.content.filter((piece) => piece.type === "text").map((piece) => piece.text).join("");

const tools = (await client.listTools()).tools.map((tool) => tool.name);
const found = textOf(await call("search_tools", { queries: plan.queries }));
const described = textOf(await call("describe_tool", { name: plan.describe }));
const answers = [];
for (const [name, args] of plan.calls) {
  const answer = await call("call_tool", { name, arguments: args });
  answers.push({ error: answer.isError ?? false, text: textOf(answer), structured: answer.structuredContent ?? null });
}
let unknown = "it was called";
try {
  await call("call_tool", { name: "filesystem__made_up", arguments: {} });
} catch (error) {
  unknown = String(error.message);
}
await client.close();
console.log(JSON.stringify({ tools, found, described, answers, unknown }));
