// Issuers of tokens that others wrote: `node issuer.mjs oauth2-mock-server|oidc-provider`.
//
// Says `listening on ISSUER CONTROL` on stderr. CONTROL/token is a new access token, and
// CONTROL/rotate makes the issuer sign with a new key and withdraw the old one.
import { createServer } from "node:http";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const AUDIENCE = "https://mcp.example.com/mcp";
const packages = join(process.env.CAPSTAN_DEV_DIR, "issuers/node_modules");
const load = (file) => import(pathToFileURL(join(packages, file)));

const listen = (handler) =>
  new Promise((done) => {
    const server = createServer(handler);
    server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${server.address().port}`));
  });

async function mockServer() {
  const { OAuth2Issuer, OAuth2Service } = await load("oauth2-mock-server/dist/index.mjs");
  let issuer;
  let service;
  const renew = async (url) => {
    issuer = new OAuth2Issuer();
    issuer.url = url;
    await issuer.keys.generate("RS256");
    service = new OAuth2Service(issuer);
  };
  const url = await listen((request, response) => service.requestHandler(request, response));
  await renew(url);
  return {
    url,
    rotate: () => renew(url),
    token: () =>
      issuer.buildToken({
        scopesOrTransform: (_, claims) =>
          Object.assign(claims, { sub: "ann", aud: AUDIENCE, roles: ["dev"] }),
        expiresIn: 600,
      }),
  };
}

async function oidcProvider() {
  const { Provider } = await load("oidc-provider/lib/index.js");
  const key = () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    return { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "ES256" };
  };
  let callback;
  const url = await listen((request, response) => callback(request, response));
  const renew = () => {
    const resource = {
      scope: "mcp",
      audience: AUDIENCE,
      accessTokenFormat: "jwt",
      accessTokenTTL: 600,
      jwt: { sign: { alg: "ES256" } },
    };
    const provider = new Provider(url, {
      clients: [
        {
          client_id: "ann",
          client_secret: "of-ann",
          grant_types: ["client_credentials"],
          redirect_uris: [],
          response_types: [],
          id_token_signed_response_alg: "ES256",
        },
      ],
      jwks: { keys: [key()] },
      extraTokenClaims: () => ({ roles: ["dev"] }),
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => AUDIENCE,
          getResourceServerInfo: () => resource,
        },
      },
    });
    callback = provider.callback();
  };
  renew();
  return {
    url,
    rotate: renew,
    token: async () => {
      const answer = await fetch(`${url}/token`, {
        method: "POST",
        headers: { authorization: `Basic ${btoa("ann:of-ann")}` },
        body: new URLSearchParams({ grant_type: "client_credentials", resource: AUDIENCE, scope: "mcp" }),
      });
      const said = await answer.json();
      if (!said.access_token) throw new Error(JSON.stringify(said));
      return said.access_token;
    },
  };
}

const issuer = await { "oauth2-mock-server": mockServer, "oidc-provider": oidcProvider }[process.argv[2]]();
const control = await listen(async (request, response) => {
  try {
    if (request.url === "/rotate") await issuer.rotate();
    response.end(request.url === "/token" ? await issuer.token() : "done");
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error));
  }
});
process.stderr.write(`listening on ${issuer.url} ${control}\n`);
