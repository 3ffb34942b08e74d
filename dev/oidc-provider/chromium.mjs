// A person with Chromium, without a screen: fills in the forms of the login as a person would.
//
//     chromium.mjs PICTURE URL    PICTURE gets the last page
import { spawn } from 'node:child_process';
import { mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [picture, url] = process.argv.slice(-2);
const profile = mkdtempSync(join(tmpdir(), 'chromium-'));
const chromium = spawn('chromium', [
  '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--window-size=900,600',
  `--user-data-dir=${profile}`, '--remote-debugging-port=0', 'about:blank',
], { stdio: ['ignore', 'ignore', 'pipe'] });

// It says where it can be steered.
const endpoint = await new Promise((found) => {
  let text = '';
  chromium.stderr.on('data', (piece) => {
    text += piece;
    const port = /ws:\/\/127\.0\.0\.1:(\d+)\//.exec(text)?.[1];
    if (port) found(`http://127.0.0.1:${port}`);
  });
});
const pages = await (await fetch(`${endpoint}/json/list`)).json();
const socket = new WebSocket(pages.find(({ type }) => type === 'page').webSocketDebuggerUrl);
await new Promise((open) => socket.addEventListener('open', open));

let last = 0;
const waiting = new Map();
const loads = [];
socket.addEventListener('message', ({ data }) => {
  const { id, method, result } = JSON.parse(data);
  waiting.get(id)?.(result);
  if (method === 'Page.loadEventFired') loads.shift()?.();
});
const ask = (method, params = {}) => new Promise((answer) => {
  last += 1;
  waiting.set(last, answer);
  socket.send(JSON.stringify({ id: last, method, params }));
});
// Runs an action and waits until the page that it leads to is there.
const visit = async (action) => {
  const loaded = new Promise((done) => loads.push(done));
  await action();
  await loaded;
};
const evaluate = async (expression) => {
  const { result } = await ask('Runtime.evaluate', { expression, returnByValue: true });
  return result?.value;
};

await ask('Page.enable');
await visit(() => ask('Page.navigate', { url }));
for (let form = 0; form < 5 && (await evaluate('document.forms.length')); form += 1) {
  await visit(() => evaluate(`
    for (const field of document.querySelectorAll('input[type=text], input[type=password]')) field.value = 'ada';
    document.querySelector('[type=submit]').click();
  `));
}
const { data } = await ask('Page.captureScreenshot', { format: 'png' });
// Whole from the first moment on.
writeFileSync(`${picture}.part`, Buffer.from(data, 'base64'));
renameSync(`${picture}.part`, picture);
await ask('Browser.close');
