"""Surprise by a language model: log-probabilities from a completions server, in nats a token.

The server must offer OpenAI's older completions API with `echo` and `logprobs`, as vLLM, SGLang and the server of
llama-cpp-python (with `--logits_all true`) do. One request holds the context and the next steps.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Sequence
from http.client import HTTPException
from itertools import accumulate
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import msgspec

from ..errors import InvalidInput
from ..io.secrets import scrub
from ..io.text import replace_surrogates
from ..messages.json_text import decodable
from ..models.overflow import detect_overflow, error_message
from .surprise import ContinuationPart, Surprise, mean_by_horizon

DEFAULT_URL = "http://127.0.0.1:8000"
"""The usual port of vLLM and of llama-cpp-python."""
TIMEOUT = 600.0
PAUSES = (1.0, 4.0)
"""Seconds before the next attempts, if the server is busy or drops the connection."""
_USE_ANOTHER = "use another, such as vLLM"
_BUSY = (429, 502, 503, 504)
_ECHOED_SHARE = 0.9
"""Tokens that cover less of the prompt are not an echo of it."""


class _Logprobs(msgspec.Struct):
    token_logprobs: list[float | None]
    tokens: list[str]
    text_offset: list[int | None] | None = None


class _Choice(msgspec.Struct):
    logprobs: _Logprobs | None = None


class _Usage(msgspec.Struct):
    completion_tokens: int | None = None


@decodable
class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


class EchoedPrompt(msgspec.Struct):
    """The tokens of a prompt: where each begins, and its log-probability."""

    starts: Sequence[int]
    logprobs: Sequence[float | None]


def check_server_url(url: str) -> None:
    """Raises InvalidInput for an address that is none, or holds a secret, since results name the server."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidInput(f"--surprise-url takes an address such as {DEFAULT_URL}, not {scrub(url)!r}.")
    if "@" in parts.netloc or parts.query:
        raise InvalidInput("--surprise-url takes no password and no query: set OPENAI_API_KEY instead.")


class CompletionServer:
    """A model on a completions server."""

    def __init__(self, model: str, url: str) -> None:
        check_server_url(url)
        self.model = model
        self.url = url.rstrip("/").removesuffix("/v1") + "/v1/completions"

    def check(self) -> None:
        """Raises InvalidInput if the server cannot be reached or does not offer what is needed."""
        self.surprise("One two three,", [ContinuationPart(1, True, "one two three.")])

    def surprise(self, context: str, passages: Sequence[ContinuationPart]) -> Surprise:
        """Nats a token of the passages after a context."""
        prompt = replace_surrogates("\n".join([context, *(passage.text for passage in passages), ""]))
        echoed = self._echo(prompt)
        costs, start = [], len(context) + 1
        for passage in passages:
            end = start + len(passage.text) + 1
            if passage.counted:
                costs.append((passage.step, *self._cost(echoed, start, end)))
            start = end
        return mean_by_horizon(costs)

    def _cost(self, echoed: EchoedPrompt, start: int, end: int) -> tuple[float, int]:
        """Nats and number of the tokens that begin in this part of the prompt."""
        first, last = (bisect_left(echoed.starts, place) for place in (start, end))
        logprobs = [value for value in echoed.logprobs[first:last] if value is not None]
        if len(logprobs) < last - first:
            raise self._problem("returns no log-probabilities of the prompt", "choose a server and a model that do")
        return -sum(logprobs), len(logprobs)

    def _echo(self, prompt: str) -> EchoedPrompt:
        body = {"model": self.model, "prompt": prompt, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        try:
            answer = msgspec.json.decode(self._post(msgspec.json.encode(body), len(prompt)), type=_Completion)
        except msgspec.MsgspecError as error:
            raise self._problem(f"does not answer as a completions server ({error})", "check --surprise-url") from error
        logprobs = answer.choices[0].logprobs if answer.choices else None
        if logprobs is None:
            raise self._problem("returns no log-probabilities", "choose a server and a model that do")
        return self._prompt_tokens(prompt, logprobs, answer.usage)

    def _prompt_tokens(self, prompt: str, logprobs: _Logprobs, usage: _Usage | None) -> EchoedPrompt:
        """Drops the generated token and aligns the others with the end of the prompt.

        Special tokens at the beginning, and characters that are split between tokens, shift all later positions.
        """
        generated = 1 if usage is None or usage.completion_tokens is None else usage.completion_tokens
        count = min(len(logprobs.tokens), len(logprobs.token_logprobs)) - generated
        tokens = logprobs.tokens[: max(0, count)]
        starts = _offsets(logprobs.text_offset, len(tokens)) or [0, *accumulate(map(len, tokens))][:-1]
        end = starts[-1] + len(tokens[-1]) if tokens else 0
        if end < _ECHOED_SHARE * len(prompt):
            raise self._problem("does not echo the prompt", _USE_ANOTHER)
        shift = end - len(prompt)
        return EchoedPrompt([start - shift for start in starts], logprobs.token_logprobs[: len(tokens)])

    def _post(self, body: bytes, characters: int) -> bytes:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        request = Request(self.url, body, headers)  # noqa: S310
        for pause in (*PAUSES, 0.0):
            try:
                with urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
                    found: bytes = answer.read()
                return found
            except HTTPError as error:
                failure = self._refusal(error, characters)
                if error.code not in _BUSY:
                    raise failure from error
            except URLError as error:
                raise self._unreachable(error.reason) from error
            except (OSError, HTTPException) as error:
                failure = self._unreachable(error)
            time.sleep(pause)
        raise failure

    def _unreachable(self, reason: object) -> InvalidInput:
        return self._problem(f"cannot be reached ({reason})", "start it, or name another with --surprise-url")

    def _refusal(self, error: HTTPError, characters: int) -> InvalidInput:
        text = error.read().decode("utf-8", "replace")
        try:
            detail = msgspec.json.decode(text)
        except msgspec.MsgspecError:
            detail = text
        too_long, window = detect_overflow(error.code, str(error.reason), detail)
        if too_long:
            size = f" of {window:,} tokens" if window else ""
            return self._problem(
                f"has a context{size} that a prompt of {characters:,} characters does not fit",
                "give a smaller --budget, or start the server with a larger context",
            )
        reason = error_message(detail) or " ".join(text.split())[:200] or error.reason
        if "echo" in str(reason).lower():
            return self._problem(f"does not echo the prompt ({reason})", _USE_ANOTHER)
        return self._problem(f"refuses ({error.code}: {reason})", "check --surprise-by and --surprise-url")

    def _problem(self, what: str, hint: str) -> InvalidInput:
        return InvalidInput(scrub(f"The server {self.url} {what}: {hint}."))


def _offsets(offsets: Sequence[int | None] | None, count: int) -> list[int] | None:
    """The server's offsets of the tokens, if they are positions: SGLang returns -1 for all."""
    found = [offset for offset in (offsets or ())[:count] if offset is not None and offset >= 0]
    return found if found and len(found) == count and found == sorted(found) else None
