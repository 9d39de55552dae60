"""Raw HTTP requests to the server, without an SDK."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from tests.providers.server import ProviderServer

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
RESPONSES = {"model": "m", "input": [{"role": "user", "content": "hi"}], "stream": True}
CLAUDE = CHAT | {"max_tokens": 5}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
PATHS = {
    "chat": ("/v1/chat/completions", {"authorization": "Bearer k"}),
    "responses": ("/v1/responses", {"authorization": "Bearer k"}),
    "claude": ("/v1/messages", {"x-api-key": "k", "anthropic-version": "2023-06-01"}),
    "gemini": ("/v1beta/models/m:streamGenerateContent?alt=sse", {"x-goog-api-key": "k"}),
}


def post(server: ProviderServer, to: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, str]:
    path, default_headers = PATHS[to]
    url = f"http://127.0.0.1:{server.port}{path}"
    request = urllib.request.Request(url, json.dumps(body).encode(), default_headers if headers is None else headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()
