// OAuth clients on the TypeScript packages: `typescript.mjs v1` on `@modelcontextprotocol/sdk`, `v2` on
// `@modelcontextprotocol/client`. Registers, signs in, and calls a tool. SDK names the folder that the packages are
// installed in; the other variables are those of python_mcp.py.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { SDK, TARGET, TOOL, BROWSER_COMMAND } = process.env;
const isV1 = process.argv[2] === "v1";
const load = (name) => import(pathToFileURL(createRequire(`${SDK}/`).resolve(name)));
const { Client } = await load(isV1 ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StreamableHTTPClientTransport } = await load(
  isV1 ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client",
);

let received;
const answer = new Promise((resolve) => (received = resolve));
const server = createServer((request, response) => {
  const query = new URL(request.url, "http://127.0.0.1").searchParams;
  response.end("done");
  if (query.has("code") || query.has("error")) received(query);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const redirectUrl = `http://127.0.0.1:${server.address().port}/callback`;

const kept = {};
const provider = {
  redirectUrl,
  clientMetadata: { client_name: `TypeScript SDK ${process.argv[2]}`, redirect_uris: [redirectUrl] },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  redirectToAuthorization: (url) => void (kept.url = url),
};

const connect = async () => {
  const transport = new StreamableHTTPClientTransport(new URL(TARGET), { authProvider: provider });
  const client = new Client({ name: "oauth-client", version: "1" });
  return { transport, client, connected: client.connect(transport) };
};
const first = await connect();
const refused = await first.connected.then(() => undefined, (error) => error);
if (!kept.url) throw refused ?? new Error("no sign-in was asked for");
const [command, ...args] = JSON.parse(BROWSER_COMMAND);
// Asynchronous, because the callback is answered by this process.
const { spawn } = await import("node:child_process");
const browser = spawn(command, [...args, kept.url.href], { stdio: "inherit" });
const ended = new Promise((resolve) => browser.on("exit", resolve));
const query = await Promise.race([
  answer,
  ended.then((code) => (code === 0 ? answer : Promise.reject(new Error("the browser did not agree")))),
]);
await ended;
if (isV1) await first.transport.finishAuth(query.get("code"));
else await first.transport.finishAuth(query);
const second = await connect();
await second.connected;
const result = await second.client.callTool({ name: TOOL, arguments: {} });
console.log(JSON.stringify({ error: Boolean(result.isError), refresh: Boolean(kept.tokens.refresh_token) }));
await second.client.close();
server.close();
process.exit(0);
