// The command line of the MCP inspector: registers, signs in, and calls a tool. See python_mcp.py for the variables.
//
// Without a browser of its own it prints the address to open.
import { spawn } from "node:child_process";
import { createServer } from "node:net";

const { TARGET, TOOL, BROWSER_COMMAND } = process.env;
const port = await new Promise((found) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const { port } = probe.address();
    probe.close(() => found(port));
  });
});
const inspector = new URL("../../.dev/inspector/node_modules/.bin/mcp-inspector", import.meta.url).pathname;
const callback = `http://127.0.0.1:${port}/oauth/callback`;
const words = ["--cli", TARGET, "--transport", "http", "--method", "tools/call", "--tool-name", TOOL, "--callback-url", callback];
// It asks for a sign-in only if it may open a browser; ours is found first.
const env = { ...process.env, MCP_AUTO_OPEN_ENABLED: "true" };
const child = spawn(process.execPath, [inspector, ...words], { stdio: ["ignore", "pipe", "pipe"], env });
const [command, ...args] = JSON.parse(BROWSER_COMMAND);

let seen = "";
let opened = false;
const listen = (data) => {
  seen += data;
  process.stdout.write(data);
  const page = /https?:\/\/\S*\/authorize\?\S+/.exec(seen.replaceAll("\u001b", " "));
  // The whole line, because an address may arrive in pieces.
  if (page && !opened && seen.slice(page.index).includes("\n")) {
    opened = true;
    spawn(command, [...args, page[0]], { stdio: "inherit" });
  }
};
child.stdout.on("data", listen);
child.stderr.on("data", listen);
child.on("exit", (code) => {
  if (!opened) console.error("no page was opened");
  process.exit(opened ? (code ?? 1) : 1);
});
