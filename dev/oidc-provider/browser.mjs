// A person with a browser: visits the page, logs in, agrees, and follows all redirects. ACCOUNT is
// the name that is typed. Prints the address where it ended.
const jar = new Map();
let url = process.argv.at(-1);
let form;
for (let step = 0; step < 20; step += 1) {
  const headers = { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') };
  if (form) headers['content-type'] = 'application/x-www-form-urlencoded';
  let response;
  try {
    response = await fetch(url, { method: form ? 'POST' : 'GET', body: form, headers, redirect: 'manual' });
  } catch {
    // Nothing listens at the address of the app.
    break;
  }
  for (const cookie of response.headers.getSetCookie()) {
    const [name, value] = cookie.split(';')[0].split('=');
    jar.set(name, value);
  }
  form = undefined;
  const location = response.headers.get('location');
  if (location) {
    url = new URL(location, url).href;
    continue;
  }
  const page = await response.text();
  if (!page.includes('<form')) break;
  // A form without an address is sent to that of its page.
  const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1];
  if (action) url = new URL(action.replaceAll('&amp;', '&'), url).href;
  const fields = new URLSearchParams({ login: process.env.ACCOUNT ?? 'ada', password: 'x', decision: 'allow' });
  for (const [, name, value] of page.matchAll(/<input[^>]*name="([^"]+)" value="([^"]*)"/g)) fields.set(name, value);
  if (!fields.has('prompt')) fields.set('prompt', 'consent');
  form = fields.toString();
}
console.log(url);
