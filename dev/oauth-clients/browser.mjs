// Opens a consent page in Chromium, takes pictures of it, and agrees, as a person would:
//
//     node browser.mjs URL
//
// PICTURES names a folder for pictures of the page: light, dark and as wide as a phone. PERSON and PASSWORD are typed
// if the page asks for them. Ends with 0 when the browser was sent away from the page.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { PICTURES, PERSON = "", PASSWORD = "" } = process.env;
const url = process.argv[2];
const PATIENCE = 60_000;

const profile = mkdtempSync(join(tmpdir(), "capstan-browser-"));
const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"];
const chromium = spawn("chromium", [...flags, `--user-data-dir=${profile}`, "about:blank"], {
  stdio: ["ignore", "ignore", "pipe"],
});
const timer = setTimeout(() => fail("the browser took too long"), PATIENCE);

function fail(words) {
  console.error(words);
  chromium.kill("SIGKILL");
  process.exit(1);
}

/** The address at which the browser is driven, from its first lines. */
const address = await new Promise((resolve, reject) => {
  let text = "";
  chromium.stderr.on("data", (data) => {
    text += data;
    const found = /DevTools listening on (ws:\S+)/.exec(text);
    if (found) resolve(found[1]);
  });
  chromium.on("exit", () => reject(new Error(`the browser does not start: ${text}`)));
});

const socket = new WebSocket(address);
await new Promise((resolve) => socket.addEventListener("open", resolve, { once: true }));
const waiting = new Map();
const listeners = [];
let count = 0;
socket.addEventListener("message", ({ data }) => {
  const message = JSON.parse(data);
  if (message.id) {
    const { resolve, reject } = waiting.get(message.id);
    return message.error ? reject(new Error(message.error.message)) : resolve(message.result);
  }
  for (const listener of listeners) listener(message);
});

/** Sends a command of the DevTools protocol. */
function send(method, params = {}, sessionId = undefined) {
  const id = ++count;
  socket.send(JSON.stringify({ id, method, params, sessionId }));
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

/** The next event with this name that fits. */
function event(method, fits = () => true) {
  return new Promise((resolve) => {
    listeners.push((message) => message.method === method && fits(message.params) && resolve(message.params));
  });
}

const { targetInfos } = await send("Target.getTargets");
const { targetId } = targetInfos.find(({ type }) => type === "page");
const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
const page = (method, params) => send(method, params, sessionId);
const evaluate = async (expression) => (await page("Runtime.evaluate", { expression, returnByValue: true })).result.value;

await page("Page.enable");
await page("Network.enable");
const loaded = event("Page.loadEventFired");
await page("Page.navigate", { url });
await loaded;

if (PICTURES) {
  for (const [name, scheme, width] of [["light", "light", 1000], ["dark", "dark", 1000], ["phone", "light", 360]]) {
    await page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    const mobile = width < 500;
    await page("Emulation.setDeviceMetricsOverride", { width, height: 760, deviceScaleFactor: 1, mobile });
    const { data } = await page("Page.captureScreenshot");
    writeFileSync(join(PICTURES, `${name}.png`), Buffer.from(data, "base64"));
    const wide = await evaluate("document.documentElement.scrollWidth > window.innerWidth");
    if (wide) fail(`the page is wider than ${width} pixels`);
  }
}

const text = await evaluate("document.body.innerText");
if (!(await evaluate("!!document.querySelector('button[value=allow]')"))) fail(`this is no consent page: ${text}`);
if (await evaluate("!!document.querySelector('input[name=user]')")) {
  for (const [name, value] of [["user", PERSON], ["password", PASSWORD]]) {
    await evaluate(`document.querySelector("input[name=${name}]").focus()`);
    await page("Input.insertText", { text: value });
  }
}
// The frame leaves our page for the client's address, whether or not the client answers.
const left = event("Network.requestWillBeSent", ({ request, redirectResponse }) => redirectResponse && request.url);
const back = event("Page.loadEventFired");
await evaluate("document.querySelector('button[value=allow]').click()");
const sent = await Promise.race([left, back.then(async () => ({ text: await evaluate("document.body.innerText") }))]);
if (sent.text !== undefined) fail(`the page was not left: ${sent.text}`);
await Promise.race([back, new Promise((resolve) => setTimeout(resolve, 3000))]);
const ended = new Promise((resolve) => chromium.on("exit", resolve));
await send("Browser.close").catch(() => chromium.kill("SIGKILL"));
await ended;
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
clearTimeout(timer);
process.exit(0);
