// Runs every client with every server, directly and through `capstan serve`, and compares what the client saw.
//
//     compare.mjs CAPSTAN [CLIENT [SERVER]]
//
// A line for each client, server and way; under it the steps in which the client saw something else. `one` is the
// endpoint /servers/NAME/mcp, `stdio` is `capstan serve` with this server alone. The last line counts steps.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [capstan, onlyClient, onlyServer] = process.argv.slice(2);
const { PATH } = process.env;
const dev = join(process.cwd(), ".dev");
const python = join(dev, "py/bin/python");
const here = "dev/compare-clients";
const bins = join(dev, "npm/node_modules/.bin");
const BUSY = 4;
const PATIENCE = 120_000;
const { different, defects, plans } = JSON.parse(readFileSync(join(here, "plan.json"), "utf8"));

const CLIENTS = {
  "mcp-auto": { command: [python, "-B", `${here}/python_mcp.py`], era: "auto" },
  "mcp-legacy": { command: [python, "-B", `${here}/python_mcp.py`], era: "legacy" },
  "fastmcp-auto": { command: [python, "-B", `${here}/python_fastmcp.py`], era: "auto" },
  "fastmcp-legacy": { command: [python, "-B", `${here}/python_fastmcp.py`], era: "legacy" },
  "typescript-v1": { command: ["node", `${here}/typescript.mjs`, "v1"], era: "legacy" },
  "typescript-v2-auto": { command: ["node", `${here}/typescript.mjs`, "v2"], era: "auto" },
  "typescript-v2-legacy": { command: ["node", `${here}/typescript.mjs`, "v2"], era: "legacy" },
};
const SERVERS = {
  typescript: { command: ["node", "dev/conformance-servers/typescript.mjs"], path: "", plan: ["suite", "skills"] },
  "python-mcp": { command: [python, "-B", "dev/conformance-servers/python_mcp.py"], path: "", plan: ["suite"] },
  "python-fastmcp": { command: [python, "-B", "dev/conformance-servers/python_fastmcp.py"], path: "", plan: ["fastmcp"] },
  everything: {
    command: ["node", "-r", "./capstan/tests/real_servers/loopback.cjs", `${bins}/mcp-server-everything`, "streamableHttp"],
    path: "/mcp",
    plan: ["everything"],
  },
};
const WAYS = ["one", "stdio"];
// Steps in which an error is what a server may answer.
const MAY_FAIL = ["no_such_tool", "no_such_resource", "large"];

// --- Processes ---

const work = mkdtempSync(join(tmpdir(), "compare-"));
const running = new Set();

function launch([program, ...args], env) {
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  child.on("exit", () => running.delete(child));
  child.on("error", () => running.delete(child));
  return child;
}

/** Starts what says where it listens: the process and the address. */
function serve(command, env) {
  const child = launch(command, env);
  child.stdout.resume();
  return new Promise((resolve, reject) => {
    const said = [];
    createInterface({ input: child.stderr }).on("line", (line) => {
      said.push(line);
      const found = /^listening on (http:\S+)/.exec(line);
      if (found) resolve({ child, url: found[1] });
    });
    child.on("exit", () => reject(new Error(`${command.join(" ")} does not listen:\n${said.join("\n")}`)));
    child.on("error", reject);
  });
}

/** What a client saw. */
function play({ command, era }, target, plan, prefix = "") {
  const TARGET = typeof target === "string" ? target : JSON.stringify(target);
  const env = { PATH, HOME: work, SDK: join(dev, "sdk"), TARGET, ERA: era, PREFIX: prefix, PLAN: JSON.stringify(plan) };
  const child = launch(command, env);
  const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
  let [out, err] = ["", ""];
  child.stdout.on("data", (piece) => (out += piece));
  child.stderr.on("data", (piece) => (err += piece));
  return new Promise((resolve) => {
    child.on("close", () => {
      clearTimeout(timer);
      try {
        resolve(JSON.parse(out));
      } catch {
        resolve({ about: { broken: err.slice(-2000) } });
      }
    });
  });
}

// --- Comparison ---

/** Takes out what must differ: the prefix of names, and the tool that each run lets come or go. */
function normalised(seen, prefix) {
  const text = prefix ? JSON.stringify(seen).replaceAll(prefix, "") : JSON.stringify(seen);
  const plain = JSON.parse(text);
  const tools = plain.tools?.tools;
  if (tools) plain.tools.tools = tools.filter((tool) => tool.name !== "dynamic_tool");
  return plain;
}

/** Where two values differ: places and what is there. */
function differences(direct, through, path) {
  const isTable = (value) => value !== null && typeof value === "object";
  if (!isTable(direct) || !isTable(through) || Array.isArray(direct) !== Array.isArray(through)) {
    const shown = (value) => (value === undefined ? "nothing" : JSON.stringify(value).slice(0, 300));
    return direct === through ? [] : [[path, `directly ${shown(direct)}, through Capstan ${shown(through)}`]];
  }
  const keys = new Set([...Object.keys(direct), ...Object.keys(through)]);
  const inside = (key) => `${path}/${key.replaceAll("/", "~")}`;
  return [...keys].flatMap((key) => differences(direct[key], through[key], inside(key)));
}

const used = new Set();
const fits = (word, found) => word === "*" || word.split("|").includes(found);

/** Whether a row names this difference: client, server, way, and the place or one that it is part of. */
function names(row, place, path) {
  const wanted = row[3].split("/");
  const found = path.split("/");
  return row.slice(0, 3).every((word, at) => fits(word, place[at])) && wanted.every((word, at) => fits(word, found[at]));
}

const total = { passed: 0, failed: 0, known: 0 };
/** The steps of a run that are not as directly, as lines. */
function judge(client, server, way, direct, through) {
  const lines = [];
  const counts = { passed: 0, failed: 0, known: 0 };
  for (const step of new Set([...Object.keys(direct), ...Object.keys(through)])) {
    const found = differences(direct[step], through[step], step);
    if (direct[step]?.failed || (direct[step]?.error && !MAY_FAIL.includes(step))) {
      found.push([step, `fails directly, so nothing is compared: ${JSON.stringify(direct[step])}`]);
    }
    const wrong = found.filter(([path]) => {
      const row = [...different, ...defects].find((row) => names(row, [client, server, way], path));
      if (row) used.add(row);
      return !row;
    });
    if (wrong.length) {
      lines.push(...wrong.slice(0, 12).map(([path, line]) => `        ${path}: ${line}`));
      if (wrong.length > 12) lines.push(`        and ${wrong.length - 12} more in ${step}`);
    }
    counts[wrong.length ? "failed" : found.length ? "known" : "passed"]++;
  }
  for (const [key, count] of Object.entries(counts)) total[key] += count;
  const ended = counts.failed ? "FAILED" : "passed";
  const known = counts.known ? `, ${counts.known} known to differ` : "";
  return [`${ended}  ${client} with ${server}, ${way}: ${counts.passed} steps as directly${known}`, ...lines];
}

/** One client with one server, each way. */
async function compare(client, server) {
  const { command, path, plan: planned } = SERVERS[server];
  const era = CLIENTS[client].era === "auto" && server !== "everything" ? "modern" : "legacy";
  const plan = Object.assign({}, ...planned.flatMap((name) => [plans[name].both, plans[name][era]]));
  const env = { PATH, SDK: join(dev, "sdk"), NOTES: "/dev/null", HOME: work };
  const upstream = await serve(command, env);
  const url = upstream.url + path;
  const config = join(work, `${client}-${server}.toml`);
  writeFileSync(config, `[servers.${server}]\nurl = "${url}"\n\n[permissions]\nallow = ["*"]\n`);
  const gateway = await serve([capstan, "serve", "--http", "127.0.0.1:0", "--config", config], { PATH, HOME: work });
  const prefix = `${server}__`;
  const targets = {
    one: [gateway.url.replace(/\/mcp$/, `/servers/${server}/mcp`), ""],
    stdio: [["env", "-i", `PATH=${PATH}`, `HOME=${work}`, capstan, "serve", "--config", config], prefix],
  };
  const direct = normalised(await play(CLIENTS[client], url, plan));
  const lines = [];
  for (const way of WAYS) {
    const [target, before] = targets[way];
    const through = normalised(await play(CLIENTS[client], target, plan, before), before);
    lines.push(...judge(client, server, way, direct, through));
  }
  gateway.child.kill();
  upstream.child.kill();
  return lines;
}

const jobs = Object.keys(SERVERS).flatMap((server) => Object.keys(CLIENTS).map((client) => [client, server]));
const chosen = jobs.filter(
  ([client, server]) => (!onlyClient || client === onlyClient) && (!onlyServer || server === onlyServer),
);
const left = [...chosen];
async function worker() {
  for (let job = left.shift(); job; job = left.shift()) {
    try {
      console.log((await compare(...job)).join("\n"));
    } catch (error) {
      total.failed++;
      console.log(`FAILED  ${job.join(" with ")}: ${error.message}`);
    }
  }
}
await Promise.all(Array.from({ length: BUSY }, worker));
for (const child of running) child.kill();
// A gateway writes to its folder until it has ended; a folder that is left over is no difference.
const deadline = Date.now() + 10_000;
while (Date.now() < deadline) {
  try {
    rmSync(work, { recursive: true, force: true });
    break;
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
if (chosen.length === jobs.length) {
  for (const row of [...different, ...defects].filter((row) => !used.has(row))) {
    total.failed++;
    console.log(`FAILED  nothing differs as plan.json says: ${JSON.stringify(row)}`);
  }
}
const known = total.known ? `, ${total.known} known to differ` : "";
console.log(`\n${total.passed} passed, ${total.failed} failed${known}`);
process.exitCode = total.failed || !total.passed ? 1 : 0;
