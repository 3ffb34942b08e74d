// An authorization server (npm oidc-provider) and an MCP server behind it, in one process.
//
//     server.mjs [SECONDS [documents]]    access tokens are valid for so long; with `documents`, a client ID may be
//                                         the address of a metadata document, also on this machine
//
// Says `listening on URL` on stderr. `POST /expire` makes all access tokens invalid; `GET /counts`
// tells how often people logged in, tokens were refreshed and refresh tokens were used twice;
// `GET /secrets` lists the codes, verifiers and tokens so far; `GET /authorizations` the header
// `Authorization` of all requests to the MCP server. The tool `whoami` names the account of a token.
import http from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const installed = createRequire(`${process.env.CAPSTAN_DEV_DIR}/oidc/`).resolve('oidc-provider');
const { Provider } = await import(pathToFileURL(installed));

const lifetime = Number(process.argv[2] ?? 3600);
const readsDocuments = process.argv[3] === 'documents';
const counts = { registrations: 0, documents: 0, logins: 0, refreshes: 0, rejected: 0, calls: 0, refused: 0 };
// All that must never be written anywhere but into the vault.
const secrets = new Set();
const issued = new Set();
const invalid = new Set();
const authorizations = [];
let provider;

const server = http.createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://h');
  if (pathname === '/mcp') return mcp(request, response);
  if (pathname === '/expire') {
    for (const token of issued) invalid.add(token);
    return send(response, 200, {});
  }
  if (pathname === '/counts') return send(response, 200, counts);
  if (pathname === '/authorizations') return send(response, 200, authorizations);
  if (pathname === '/secrets') return send(response, 200, [...secrets]);
  if (pathname === '/.well-known/oauth-protected-resource/mcp') {
    return send(response, 200, {
      resource: `${origin}/mcp`,
      authorization_servers: [origin],
      scopes_supported: ['tools'],
    });
  }
  return provider.callback()(request, response);
});

function send(response, status, body, headers = {}) {
  const text = JSON.stringify(body);
  const length = Buffer.byteLength(text);
  response.writeHead(status, {
    'content-type': 'application/json', 'content-length': length, ...headers,
  });
  response.end(text);
}

async function mcp(request, response) {
  authorizations.push(request.headers.authorization ?? '');
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
  const found = token && (await provider.AccessToken.find(token));
  if (!found || invalid.has(token) || found.aud !== `${origin}/mcp`) {
    counts.refused += 1;
    return send(response, 401, { error: 'invalid_token' }, {
      'www-authenticate':
        `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp", scope="tools"`,
    });
  }
  if (request.method !== 'POST') return send(response, 405, {});
  let text = '';
  for await (const piece of request) text += piece;
  const { id, method, params } = JSON.parse(text);
  if (id === undefined) {
    response.writeHead(202);
    return response.end();
  }
  const answer = (result) => send(response, 200, { jsonrpc: '2.0', id, result });
  switch (method) {
    case 'initialize':
      return answer({
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'guarded', version: '1' },
      });
    case 'tools/list':
      return answer({ tools: ['echo', 'whoami'].map((name) => ({ name, inputSchema: { type: 'object' } })) });
    case 'tools/call':
      counts.calls += 1;
      if (params.name === 'whoami') {
        return answer({ content: [{ type: 'text', text: found.accountId }] });
      }
      return answer({ content: [{ type: 'text', text: `echo ${params.arguments?.n ?? ''}` }] });
    default:
      return send(response, 200, {
        jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' },
      });
  }
}

await new Promise((done) => server.listen(0, '127.0.0.1', done));
const origin = `http://127.0.0.1:${server.address().port}`;
provider = new Provider(origin, {
  scopes: ['openid', 'offline_access', 'tools'],
  clients: [],
  // Without its guard, which refuses addresses of this machine.
  fetch: (url, { dispatcher, ...options }) => {
    counts.documents += 1;
    return fetch(url, options);
  },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    clientIdMetadataDocument: { enabled: readsDocuments, ack: 'draft-02' },
    revocation: { enabled: true },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      defaultResource: () => `${origin}/mcp`,
      getResourceServerInfo: () => ({
        scope: 'tools', audience: `${origin}/mcp`, accessTokenTTL: lifetime, accessTokenFormat: 'opaque',
      }),
    },
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async () => true,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
provider.on('grant.success', ({ oidc, body }) => {
  const grant = oidc.params?.grant_type;
  const sent = ['code', 'code_verifier', 'refresh_token'].map((key) => oidc.params?.[key]);
  if (body.access_token) issued.add(body.access_token);
  for (const secret of [...sent, body.access_token, body.refresh_token]) {
    if (secret) secrets.add(secret);
  }
  if (grant === 'authorization_code') counts.logins += 1;
  if (grant === 'refresh_token') counts.refreshes += 1;
});
provider.on('registration_create.success', () => {
  counts.registrations += 1;
});
provider.on('grant.error', (_, error) => {
  counts.rejected += 1;
  console.error(`rejected: ${error.message} ${error.error_detail ?? ''}`);
});
console.error(`listening on ${origin}/mcp`);
