// A person with a browser: visits the page, logs in, agrees, and follows all redirects.
const jar = new Map();
let url = process.argv.at(-1);
let form;
for (let step = 0; step < 20; step += 1) {
  const headers = { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') };
  if (form) headers['content-type'] = 'application/x-www-form-urlencoded';
  const response = await fetch(url, {
    method: form ? 'POST' : 'GET', body: form, headers, redirect: 'manual',
  });
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
  const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1];
  if (!action) break;
  url = new URL(action.replaceAll('&amp;', '&'), url).href;
  const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1] ?? 'consent';
  form = new URLSearchParams({ prompt, login: 'ada', password: 'x' }).toString();
}
