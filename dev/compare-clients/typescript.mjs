// Clients on the TypeScript packages: `typescript.mjs v1` on `@modelcontextprotocol/sdk`, `v2` on
// `@modelcontextprotocol/client`.
//
// SDK names the folder that the packages are installed in, TARGET is the URL of a server or a command as a JSON list,
// ERA is `auto` or `legacy` (v1 has only this), PREFIX stands before the names of tools and prompts, PLAN is JSON that
// names what to use. Writes to stdout a JSON object with what was seen in each step.
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const { SDK, TARGET, ERA, PREFIX = "" } = process.env;
const plan = JSON.parse(process.env.PLAN);
const isV1 = process.argv[2] === "v1";
const load = (name) => import(pathToFileURL(createRequire(`${SDK}/`).resolve(name)));
// How long a message may take that belongs to no request.
const PATIENCE = 5000;
const TIMEOUT = 30000;

const v1 = isV1 && (await load("@modelcontextprotocol/sdk/types.js"));
const { Client } = await load(isV1 ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StdioClientTransport } = await load(
  isV1 ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio",
);
const { StreamableHTTPClientTransport } = await load(
  isV1 ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client",
);

// --- Who is asked and told ---

let asked = [];
let logged = [];
let told = [];
let news = () => {};
let question;
const questioned = new Promise((resolve) => (question = resolve));

/** The first value that fits, as a person would fill in a form. */
function filled(schema) {
  const choices = schema.enum ?? schema.oneOf?.map((option) => option.const);
  if (choices) return choices[0];
  return { boolean: true, integer: 1, number: 1, array: [] }[schema.type] ?? "Ada";
}

const answers = {
  "sampling/createMessage": ({ params }) => {
    asked.push(["sampling", params]);
    const content = { type: "text", text: "Paris" };
    return { role: "assistant", content, model: "model", stopReason: "endTurn" };
  },
  "elicitation/create": ({ params }) => {
    asked.push(["elicitation", params]);
    const fields = Object.entries(params.requestedSchema.properties);
    return { action: "accept", content: Object.fromEntries(fields.map(([name, schema]) => [name, filled(schema)])) };
  },
  "roots/list": () => {
    asked.push(["roots"]);
    question(["roots"]);
    return { roots: [{ uri: "file:///compared", name: "compared" }] };
  },
};
const notices = {
  "notifications/message": ({ params }) => void logged.push(params),
  "notifications/tools/list_changed": (notice) => hear(notice),
  "notifications/resources/updated": (notice) => hear(notice),
};
const schemas = isV1 && {
  "sampling/createMessage": v1.CreateMessageRequestSchema,
  "elicitation/create": v1.ElicitRequestSchema,
  "roots/list": v1.ListRootsRequestSchema,
  "notifications/message": v1.LoggingMessageNotificationSchema,
  "notifications/tools/list_changed": v1.ToolListChangedNotificationSchema,
  "notifications/resources/updated": v1.ResourceUpdatedNotificationSchema,
};

function hear({ method, params }) {
  told.push([method, params ?? {}]);
  news();
}

/** What was told, or nothing after a while. */
async function wait() {
  if (!told.length) await Promise.race([new Promise((resolve) => (news = resolve)), pause(PATIENCE)]);
  return told.splice(0);
}

// --- The client ---

const client = new Client(
  { name: "compared", version: "1" },
  {
    capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } },
    ...(!isV1 && { versionNegotiation: { mode: ERA } }),
  },
);
for (const [method, answer] of Object.entries(answers)) {
  client.setRequestHandler(isV1 ? schemas[method] : method, async (request) => answer(request));
}
for (const [method, notice] of Object.entries(notices)) {
  client.setNotificationHandler(isV1 ? schemas[method] : method, notice);
}
const [command, ...args] = TARGET.startsWith("[") ? JSON.parse(TARGET) : [];
await client.connect(
  command
    ? new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" })
    : new StreamableHTTPClientTransport(new URL(TARGET)),
);
const isModern = !isV1 && client.getNegotiatedProtocolVersion() >= "2026";

const call = (name, args, options = {}) => {
  const params = { name: PREFIX + name, arguments: args };
  const all = { timeout: TIMEOUT, ...options };
  return isV1 ? client.callTool(params, undefined, all) : client.callTool(params, all);
};

/** Listens, does something, and gives what was told. */
async function listening(filter, act) {
  const subscription = isModern ? await client.listen(filter) : undefined;
  await act();
  const heard = await wait();
  await subscription?.close();
  return heard;
}

// --- The steps ---

const seen = {};
async function run(name, step) {
  asked = [];
  logged = [];
  try {
    seen[name] = await step();
  } catch (error) {
    const { code, message, data } = error;
    seen[name] = typeof code === "number" ? { error: { code, message, data } } : { failed: String(error) };
  }
}

// Before anything is listed: a client that only listens.
if (plan.changes) await run("list_changed", () => listening({ toolsListChanged: true }, () => call(plan.changes, {})));
await run("about", () => [
  // v1 does not say it.
  isV1 ? null : client.getNegotiatedProtocolVersion(),
  client.getServerVersion(),
  client.getServerCapabilities(),
  client.getInstructions() ?? null,
]);
await run("tools", () => client.listTools());
await run("resources", () => client.listResources());
await run("resource_templates", () => client.listResourceTemplates());
await run("prompts", () => client.listPrompts());
await run("progress", async () => {
  const events = [];
  const result = await call(...plan.progress, { onprogress: (event) => events.push(event) });
  // The packages drop a last message that comes in one piece with the answer.
  return { events: events.slice(0, 2), result };
});
// Capstan starts a server with its first call, and the server asks when it has started.
if (plan.outside) {
  await run("roots_outside_a_call", async () => (await Promise.race([questioned, pause(PATIENCE)])) ?? "not asked");
}
if (plan.logging) await run("logging", async () => ({ result: await call(...plan.logging), logged }));
for (const what of ["elicitation", "sampling", "roots"]) {
  await run(what, async () => {
    const result = await call(...plan[what]);
    // A server may ask for roots at any time; that is another step.
    return { result, asked: asked.filter(([kind]) => kind === what) };
  });
}
await run("completion", () => {
  const [name, argument, value] = plan.completion;
  return client.complete({ ref: { type: "ref/prompt", name: PREFIX + name }, argument: { name: argument, value } });
});
await run("resource", () => client.readResource({ uri: plan.resource }));
await run("prompt", () => client.getPrompt({ name: PREFIX + plan.prompt[0], arguments: plan.prompt[1] }));
await run("no_such_tool", () => call("no_such_tool", {}));
await run("no_such_resource", () => client.readResource({ uri: plan.no_such_resource }));
if (plan.watched) {
  const [uri, trigger] = plan.watched;
  await run("subscription", async () => {
    if (!isModern) await client.subscribeResource({ uri });
    return listening({ resourceSubscriptions: [uri] }, () => call(trigger, { uri }));
  });
}
if (plan.large) {
  await run("large", async () => {
    const { isError = false, content } = await call(...plan.large);
    return { isError, length: content[0].text.length };
  });
  await run("after_large", () => call(...plan.simple));
}
process.stdout.write(JSON.stringify(seen), () => process.exit(0));
