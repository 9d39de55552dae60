"""A completions server with a small language model, for tests: bigrams of tokens, learned from the prompt itself."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate, pairwise
from math import log
from typing import Any

_TOKEN = re.compile(r" ?\w{1,6}|\s|[^\w\s]")
VOCABULARY = 2_000


def tokenize(text: str) -> list[str]:
    return _TOKEN.findall(text)


def bigram_logprobs(tokens: list[str]) -> list[float | None]:
    """Log-probability of each token after its predecessor, by the counts so far; none for the first."""
    pairs: Counter[tuple[str, str]] = Counter()
    heads: Counter[str] = Counter()
    found: list[float | None] = [None]
    for pair in pairwise(tokens):
        found.append(log((pairs[pair] + 1 / VOCABULARY) / (heads[pair[0]] + 1)))
        pairs[pair] += 1
        heads[pair[0]] += 1
    return found


class CompletionsApi:
    """Answers like the named server, and records requests."""

    def __init__(self, like: str) -> None:
        self.like = like
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.busy = 0
        """Number of requests to refuse as busy."""
        self.most = 0
        """Prompt length in tokens above which the context is too small; 0 is no limit."""

    def answer(self, body: dict[str, Any]) -> tuple[int, Any]:
        self.requests.append(body)
        if self.busy:
            self.busy -= 1
            return 503, {"error": {"message": "loading the model"}}
        tokens = tokenize(body["prompt"])
        if self.most and len(tokens) > self.most:
            text = f"This model's maximum context length is {self.most} tokens. However, you requested {len(tokens)}."
            return 400, {"error": {"message": text, "type": "BadRequestError", "code": 400}}
        if self.like == "unknown model":
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}
        if self.like == "llama.cpp":
            return 500, {"error": {"code": 500, "message": "Only no echo is supported", "type": "server_error"}}
        if self.like == "web page":
            return 200, "<html>hello</html>"
        return 200, self._completion(tokens)

    def _completion(self, tokens: list[str]) -> dict[str, Any]:
        logprobs = bigram_logprobs(tokens)
        if self.like == "special token":
            tokens, logprobs = ["<|begin_of_text|>", *tokens], [None, *logprobs]
            logprobs[1] = -9.0
        if self.like == "split characters":
            tokens = [piece for token in tokens for piece in (["\ufffd"] * 3 if token == "☃" else [token])]
            logprobs = bigram_logprobs(tokens)
        if self.like == "no echo":
            tokens, logprobs = [], []
        if self.like == "echo without logprobs":
            logprobs = [None] * len(tokens)
        shown, given = [*tokens, " generated"], [*logprobs, -0.1]
        found: dict[str, Any] = {"tokens": shown, "token_logprobs": given}
        if self.like == "sglang":
            found["text_offset"] = [-1] * len(shown)
        elif self.like != "no offsets":
            found["text_offset"] = [0, *accumulate(map(len, shown))][:-1]
        usage = {} if self.like == "no usage" else {"usage": {"prompt_tokens": len(tokens), "completion_tokens": 1}}
        choice = {"index": 0, "text": "".join(shown), "logprobs": None if self.like == "no logprobs" else found}
        return {"object": "text_completion", "choices": [choice]} | usage


@contextmanager
def completion_server(like: str = "vllm") -> Iterator[tuple[CompletionsApi, str]]:
    """Runs the server in a thread; yields it and its address."""
    api = CompletionsApi(like)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            api.keys.append(self.headers["Authorization"])
            status, answer = api.answer(body) if self.path == "/v1/completions" else (404, {"detail": "Not Found"})
            data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield api, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
