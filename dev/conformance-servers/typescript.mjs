// A conformance server on the TypeScript SDK v2, for both eras at one endpoint, on loopback and a free port.
//
// Says `listening on URL` on stderr. Requests of 2026-07-28 go to the SDK's handler; requests of earlier
// revisions go to sessions, which the SDK's transport keeps.
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

// The packages are not beside this file: SDK names the folder that they are installed in.
const sdk = createRequire(`${process.env.SDK}/`);
const load = (name) => import(pathToFileURL(sdk.resolve(name)));
const { McpServer, ResourceTemplate, createMcpHandler, ...mcp } = await load("@modelcontextprotocol/server");
const node = await load("@modelcontextprotocol/node");
const { SkillsExtension, memorySkillFiles } = await load("@modelcontextprotocol/server/ext/skills");
const z = await load("zod");
const { image, audio, forms, inputs } = JSON.parse(readFileSync(new URL("items.json", import.meta.url)));

const PAUSE = 20;
const states = mcp.createRequestStateCodec({ key: new Uint8Array(randomBytes(32)) });

const text = (text) => ({ content: [{ type: "text", text }] });
const embedded = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const form = (message, requestedSchema) => mcp.inputRequired.elicit({ message, requestedSchema });
const sample = (text, maxTokens) =>
  mcp.inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text } }], maxTokens });
const userName = () => form("What is your name?", forms.name);
const accepted = (ctx, key) => mcp.acceptedContent(ctx.mcpReq.inputResponses, key);

const skills = await SkillsExtension.load(
  memorySkillFiles({
    "tie-knots/SKILL.md": "---\nname: tie-knots\ndescription: Ties knots. Use it for ropes.\n---\n\n# Knots\n\nSee references/bowline.md.\n",
    "tie-knots/references/bowline.md": "# Bowline\n\nA loop that does not slip.\n",
    "splice/SKILL.md": "---\nname: splice\ndescription: Joins two ropes.\n---\n\n# Splices\n",
  }),
);

const sessions = new Map();
/** Whether the item that comes and goes is in a list, and that item of each server. */
const shown = { tool: false, prompt: false };
const dynamic = new WeakMap();

function build() {
  const server = new McpServer(
    { name: "conformance-typescript", version: "1.0.0" },
    {
      instructions: "Offers what the conformance suite looks for.",
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
      requestState: { verify: states.verify },
    },
  );
  const items = {};
  addTools(server, items);
  addQuestions(server);
  addRounds(server);
  addResources(server);
  addPrompts(server, items);
  skills.attach(server);
  for (const [what, item] of Object.entries(items)) if (!shown[what]) item.disable();
  dynamic.set(server, items);
  server.server.setRequestHandler("logging/setLevel", async () => ({}));
  server.server.setRequestHandler("completion/complete", async ({ params }) => {
    const values = ["paris", "park", "party"].filter((value) => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return server;
}

/** tool(server, NAME, run, [SCHEMA]): run gets the arguments and the context. */
function tool(server, name, run, schema = z.object({})) {
  const description = `The tool ${name}, for tests`;
  return server.registerTool(name, { description, inputSchema: schema }, async (args, ctx) => run(args, ctx));
}

function addTools(server, items) {
  const picture = { type: "image", data: image, mimeType: "image/png" };
  tool(server, "test_simple_text", () => text("This is a simple text response for testing."));
  tool(server, "test_image_content", () => ({ content: [picture] }));
  tool(server, "test_audio_content", () => ({ content: [{ type: "audio", data: audio, mimeType: "audio/wav" }] }));
  tool(server, "test_embedded_resource", () => ({
    content: [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
  }));
  tool(server, "test_multiple_content_types", () => ({
    content: [
      { type: "text", text: "Multiple content types test:" },
      picture,
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  }));
  tool(server, "test_error_handling", () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  tool(server, "test_tool_with_logging", async (_, ctx) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await ctx.mcpReq.log("info", data);
      await pause(PAUSE);
    }
    return text("Tool with logging executed successfully");
  });
  tool(server, "test_logging_tool", async (_, ctx) => {
    await ctx.mcpReq.log("info", "the logging tool runs");
    return text("logged");
  });
  tool(server, "test_tool_with_progress", async (_, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      const params = { progressToken, progress, total: 100, message: `${progress} of 100` };
      await ctx.mcpReq.notify({ method: "notifications/progress", params });
      await pause(PAUSE);
    }
    return text("Tool with progress executed successfully");
  });
  tool(server, "test_reconnection", async (_, ctx) => {
    sessions.get(ctx.sessionId)?.transport.closeSSEStream(ctx.mcpReq.id);
    await pause(100);
    return text("Reconnection test completed");
  });
  for (const what of Object.keys(shown)) tool(server, `test_trigger_${what}_change`, () => change(what));
  items.tool = tool(server, "dynamic_tool", () => text("dynamic"));
  tool(server, "test_trigger_update", async ({ uri }) => {
    modern.notify.resourceUpdated(uri);
    const told = [...sessions.values()].filter(({ watched }) => watched.has(uri));
    await Promise.all(told.map(({ server }) => server.server.sendResourceUpdated({ uri })));
    return text(`${uri} changed`);
  }, z.object({ uri: z.string() }));
  tool(server, "test_large_text", ({ size }) => text("x".repeat(size)), z.object({ size: z.number().int() }));
  for (const [name, schema] of Object.entries(inputs)) {
    tool(server, name, (args) => text(JSON.stringify(args)), mcp.fromJsonSchema(schema));
  }
}

/** Shows or hides an item of a list, and tells the clients of both eras. */
function change(what) {
  shown[what] = !shown[what];
  modern.notify[`${what}sChanged`]();
  for (const { server } of sessions.values()) {
    // Each session has a server of its own, which tells its client when an item comes or goes.
    const item = dynamic.get(server)[what];
    if (shown[what]) item.enable();
    else item.disable();
  }
  return text("changed");
}

/** Tools that ask by requests of their own, which only the legacy era has. */
function addQuestions(server) {
  const ask = async (ctx, method, params) => ctx.mcpReq.send({ method, params });
  const elicit = async (ctx, message, requestedSchema) => {
    const { action, content } = await ask(ctx, "elicitation/create", { message, requestedSchema });
    return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`);
  };
  tool(server, "test_sampling", async ({ prompt }, ctx) => {
    const messages = [{ role: "user", content: { type: "text", text: prompt } }];
    const { content } = await ask(ctx, "sampling/createMessage", { messages, maxTokens: 100 });
    return text(`LLM response: ${content.text}`);
  }, z.object({ prompt: z.string() }));
  tool(server, "test_elicitation", ({ message }, ctx) => elicit(ctx, message, forms.response),
    z.object({ message: z.string() }));
  tool(server, "test_elicitation_sep1034_defaults", (_, ctx) => elicit(ctx, "Please review", forms.defaults));
  tool(server, "test_elicitation_sep1330_enums", (_, ctx) => elicit(ctx, "Please choose", forms.enums));
  tool(server, "test_roots", async (_, ctx) => {
    const { roots } = await ask(ctx, "roots/list");
    return text(JSON.stringify(roots));
  });
}

/** Tools that ask by results; the SDK makes requests of them in the legacy era. */
function addRounds(server) {
  const required = mcp.inputRequired;
  const round = (name, run) => tool(server, `test_input_required_result_${name}`, run);
  round("elicitation", (_, ctx) => {
    const name = accepted(ctx, "user_name")?.name;
    return typeof name === "string" ? text(`Hello, ${name}!`) : required({ inputRequests: { user_name: userName() } });
  });
  round("sampling", (_, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.capital_question;
    if (answer) return text(`Model said: ${answer.content?.text}`);
    return required({ inputRequests: { capital_question: sample("What is the capital of France?", 100) } });
  });
  round("list_roots", (_, ctx) => {
    const roots = ctx.mcpReq.inputResponses?.client_roots?.roots;
    return roots ? text(JSON.stringify(roots)) : required({ inputRequests: { client_roots: required.listRoots() } });
  });
  for (const name of ["request_state", "tampered_state"]) {
    round(name, async (_, ctx) => {
      if (accepted(ctx, "confirm") && ctx.mcpReq.requestState()?.name === name) return text("state-ok");
      const inputRequests = { confirm: form("Please confirm", forms.ok) };
      return required({ inputRequests, requestState: await states.mint({ name }) });
    });
  }
  round("multiple_inputs", async (_, ctx) => {
    const answers = ctx.mcpReq.inputResponses;
    if (answers?.user_name && answers.greeting && answers.client_roots) return text("All inputs received");
    const inputRequests = {
      user_name: userName(),
      greeting: sample("Generate a greeting", 50),
      client_roots: required.listRoots(),
    };
    return required({ inputRequests, requestState: await states.mint({ name: "multiple_inputs" }) });
  });
  round("multi_round", async (_, ctx) => {
    const { step = 0, name } = ctx.mcpReq.requestState() ?? {};
    if (step === 2) return text(`${name} likes ${accepted(ctx, "step2")?.color}`);
    const next = step === 0
      ? { step1: form("Step 1: What is your name?", forms.name) }
      : { step2: form("Step 2: What is your favorite color?", forms.color) };
    const requestState = await states.mint({ step: step + 1, name: accepted(ctx, "step1")?.name });
    return required({ inputRequests: next, requestState });
  });
  const declaredBy = (ctx) => ctx.mcpReq.envelope?.[mcp.CLIENT_CAPABILITIES_META_KEY] ?? {};
  // The SDK refuses to send a question of a kind that the client did not declare.
  tool(server, "test_missing_capability", (_, ctx) =>
    declaredBy(ctx).sampling ? text("the client can sample") : required({ inputRequests: { needed: sample("?", 10) } }));
  tool(server, "test_streaming_elicitation", async (_, ctx) => {
    if (ctx.mcpReq.inputResponses) return text("went on");
    const progressToken = ctx.mcpReq._meta?.progressToken;
    const params = { progressToken, progress: 1, total: 2, message: "about to ask" };
    if (progressToken !== undefined) await ctx.mcpReq.notify({ method: "notifications/progress", params });
    return required({ inputRequests: { go_on: form("Go on?", forms.ok) } });
  });
  round("capabilities", (_, ctx) => {
    if (ctx.mcpReq.inputResponses) return text("answered");
    const declared = declaredBy(ctx);
    const inputRequests = {
      ...(declared.elicitation && { user_name: userName() }),
      ...(declared.sampling && { greeting: sample("Say hello", 50) }),
    };
    return Object.keys(inputRequests).length ? required({ inputRequests }) : text("the client cannot be asked");
  });
}

function addResources(server) {
  const about = (name, mimeType) => ({ description: `The resource ${name}, for tests`, mimeType });
  const add = (name, mimeType, contents) => {
    const uri = `test://${name}`;
    server.registerResource(name, uri, about(name, mimeType), async () => ({ contents: [{ uri, mimeType, ...contents }] }));
  };
  add("static-text", "text/plain", { text: "This is the content of the static text resource." });
  add("static-binary", "image/png", { blob: image });
  add("watched-resource", "text/plain", { text: "Watched resource content" });
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, about("template", "application/json"), async (uri, { id }) => {
    const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
    return { contents: [{ uri: uri.href, mimeType: "application/json", text }] };
  });
  server.server.setRequestHandler("resources/subscribe", async ({ params }, ctx) => {
    sessions.get(ctx.sessionId)?.watched.add(params.uri);
    return {};
  });
  server.server.setRequestHandler("resources/unsubscribe", async ({ params }, ctx) => {
    sessions.get(ctx.sessionId)?.watched.delete(params.uri);
    return {};
  });
}

function addPrompts(server, items) {
  const user = (content) => ({ role: "user", content });
  const said = (text) => user({ type: "text", text });
  const add = (name, run, argsSchema) => {
    const description = `The prompt ${name}, for tests`;
    // Without a schema the context is the first argument, with one the second.
    const messages = async (...given) => {
      const got = await run(...given);
      return Array.isArray(got) ? { messages: got } : got;
    };
    return server.registerPrompt(name, { description, argsSchema }, messages);
  };
  add("test_simple_prompt", () => [said("This is a simple prompt for testing.")]);
  add("test_prompt_with_arguments", ({ arg1, arg2 }) => [
    said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`),
  ], z.object({ arg1: z.string(), arg2: z.string() }));
  add("test_prompt_with_embedded_resource", ({ resourceUri }) => [
    user(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")),
    said("Please process the embedded resource above."),
  ], z.object({ resourceUri: z.string() }));
  add("test_prompt_with_image", () => [
    user({ type: "image", data: image, mimeType: "image/png" }),
    said("Please analyze the image above."),
  ]);
  items.prompt = add("dynamic_prompt", () => [said("dynamic")]);
  add("test_input_required_result_prompt", (ctx) => {
    const context = accepted(ctx, "user_context")?.context;
    if (typeof context === "string") return [said(`Use this context: ${context}`)];
    return mcp.inputRequired({ inputRequests: { user_context: form("Which context?", forms.context) } });
  });
}

// --- Serving both eras ---

const modern = createMcpHandler(build, { legacy: "reject" });
const answerModern = node.toNodeHandler(modern);
const isFromHere = node.localhostHostValidation();

/** Events of the sessions, kept so that a stream can be resumed. */
class Events {
  #all = [];
  async storeEvent(stream, message) {
    this.#all.push({ stream, message });
    return String(this.#all.length);
  }
  async replayEventsAfter(last, { send }) {
    const stream = this.#all[Number(last) - 1]?.stream;
    for (let at = Number(last); at < this.#all.length; at++) {
      const event = this.#all[at];
      const isMessage = event.message && Object.keys(event.message).length > 0;
      if (event.stream === stream && isMessage) await send(String(at + 1), event.message);
    }
    return stream;
  }
}

async function openSession() {
  const server = build();
  const transport = new node.NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Events(),
    retryInterval: 100,
    onsessioninitialized: (id) => void sessions.set(id, { server, transport, watched: new Set() }),
  });
  transport.onclose = () => sessions.delete(transport.sessionId);
  await server.connect(transport);
  return transport;
}

async function answer(request, response) {
  if (!isFromHere(request, response)) return;
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  let body;
  try {
    body = pieces.length ? JSON.parse(Buffer.concat(pieces)) : undefined;
  } catch {
    response.writeHead(400, { "content-type": "application/json" });
    response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}');
    return;
  }
  const { headers, method } = request;
  const session = headers["mcp-session-id"];
  const { kind } = mcp.classifyInboundRequest({
    httpMethod: method,
    protocolVersionHeader: headers["mcp-protocol-version"],
    mcpMethodHeader: headers["mcp-method"],
    body,
  });
  if (kind !== "legacy" && !session) return answerModern(request, response, body);
  const isNew = !session && mcp.isInitializeRequest(body);
  const transport = isNew ? await openSession() : sessions.get(session)?.transport;
  if (transport) return transport.handleRequest(request, response, body);
  response.writeHead(session ? 404 : 400, { "content-type": "application/json" });
  response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no such session"}}');
}

const listener = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error);
    response.destroy();
  });
});
listener.listen(0, "127.0.0.1", () => {
  console.error(`listening on http://127.0.0.1:${listener.address().port}/mcp`);
});
