"""An OAuth client on the Python package `mcp`: registers, signs in, and calls a tool.

TARGET is the URL of the gateway, TOOL the tool; BROWSER_COMMAND is a JSON list, which gets the address to open.
"""

import asyncio
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import httpx2 as httpx
import mcp
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


answers: list[dict] = []


class Callback(BaseHTTPRequestHandler):
    def do_GET(self):
        query = urlsplit(self.path).query
        if "code=" in query or "error=" in query:
            answers.append({key: values[0] for key, values in parse_qs(query).items()})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"done")

    def log_message(self, *_):
        pass


async def open_page(url: str) -> None:
    command = json.loads(os.environ["BROWSER_COMMAND"])
    browser = await asyncio.create_subprocess_exec(*command, url)
    assert await browser.wait() == 0, "the browser did not agree"


async def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Callback)
    Thread(target=server.serve_forever, daemon=True).start()
    redirect = f"http://127.0.0.1:{server.server_port}/callback"

    async def callback() -> AuthorizationCodeResult:
        answer = answers.pop()
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))

    metadata = OAuthClientMetadata(client_name="Python SDK", redirect_uris=[redirect])
    storage = Storage()
    target = os.environ["TARGET"]
    auth = OAuthClientProvider(target, metadata, storage, open_page, callback)
    async with httpx.AsyncClient(auth=auth, follow_redirects=True, timeout=30) as http:
        async with mcp.Client(streamable_http_client(target, http_client=http)) as client:
            result = await client.call_tool(os.environ["TOOL"], {})
            print(json.dumps({"error": bool(result.is_error), "refresh": bool(storage.tokens.refresh_token)}))


asyncio.run(main())
