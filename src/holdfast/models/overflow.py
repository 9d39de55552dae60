"""Detects that a prompt was too long, by the error messages of all providers, since few send a code.

Rate limits with similar wording are excluded first. The window size is read from the message where it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ..messages import to_json
from .calls import Failure, ModelCall, Reply, StepCall, StepReply

_TEXT_KEYS = ("message", "msg", "code", "type", "status", "reason", "param", "detail", "error_code")
_NESTED_KEYS = ("error", "details", "detail", "response")
_MAX_DEPTH = 5


def error_text(message: str, body: Any) -> str:
    """Joins the message with the codes and texts of the body."""
    if isinstance(body, str):
        return f"{message}\n{body}"
    return "\n".join(dict.fromkeys((message, *_text_values(body, _MAX_DEPTH))))


def error_codes(body: Any) -> Iterator[str]:
    """Yields every code, type and status in the body, outermost first."""
    for layer in _layers(body, _MAX_DEPTH):
        yield from (str(layer[key]) for key in ("code", "type", "status", "reason") if layer.get(key) is not None)


def error_message(body: Any) -> str:
    """Returns the human-readable message of the body."""
    messages = (layer.get(key) for layer in _layers(body, _MAX_DEPTH) for key in ("message", "msg", "detail"))
    return next((text for text in messages if isinstance(text, str) and text.strip()), "")


def find_field(body: Any, key: str) -> Any:
    """Returns the outermost value of a key in the body."""
    return next((layer[key] for layer in _layers(body, _MAX_DEPTH) if key in layer), None)


def _text_values(body: Any, depth: int) -> Iterator[str]:
    for layer in _layers(body, depth):
        yield from (str(layer[key]) for key in _TEXT_KEYS if isinstance(layer.get(key), str | int))


def _layers(body: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if depth == 0:
        return
    if isinstance(body, list | tuple):
        for item in body[:8]:
            yield from _layers(item, depth - 1)
    elif isinstance(body, Mapping):
        yield body
        for key in _NESTED_KEYS:
            yield from _layers(body.get(key), depth - 1)


_NUMBER = r"[(\s:=]*(?P<window>\d[\d,]*)"
_NOT_OVERFLOW_PATTERN = re.compile(
    r"rate[ _-]?limit|too many requests|throttl|^service ?unavailable|string_above_max_length"
    r"|invalid 'user'.*string too long|per minute",
    re.IGNORECASE,
)
_OVER_MINUTE_LIMIT = re.compile(
    r"request too large.*limit:?\s*(?P<limit>\d[\d,]*),?\s*requested:?\s*(?P<asked>\d[\d,]*)", re.IGNORECASE | re.DOTALL
)
"""One request over the limit per minute: waiting does not help, only a shorter prompt."""
_STRONG_PATTERNS = (
    # Anthropic, Bedrock
    rf"prompt is too long(?:.*?tokens >{_NUMBER})?",
    rf"exceed context limit(?:.*?>{_NUMBER})?",
    r"request_too_large|input is too long for requested model|model_context_window_exceeded",
    # OpenAI, OpenRouter, vLLM, Groq, LiteLLM
    rf"(?:maximum|max) context length(?: is| of|:){_NUMBER}",
    rf"exceeds (?:the )?(?:model'?s )?(?:maximum|max) context length(?:{_NUMBER})?",
    r"context[_ ]?(?:length|window)[_ ]?exceeded|exceeds the context window",
    r"reduce the length of (?:the |your )?(?:messages|prompt|input)",
    rf"maximum (?:allowed )?input length(?: is| of){_NUMBER} ?tokens",
    rf"maximum context limit(?:(?: is| of)?{_NUMBER})?",
    rf"tokens exceed the configured limit(?: of{_NUMBER})?",
    r"tokens in request more than max tokens allowed",
    # Gemini, xAI, GitHub Copilot
    rf"exceeds the maximum number of (?:input )?tokens(?: allowed)?{_NUMBER}",
    r"input token count.*exceeds the maximum|exceeds the maximum number of tokens allowed",
    rf"input token count is.*?only supports up to{_NUMBER}",
    rf"maximum prompt length is{_NUMBER}",
    rf"tokens?\b.*exceeds the limit of{_NUMBER}",
    # llama.cpp, LM Studio, Ollama, SGLang, TGI
    rf"exceeds? the available context size(?:{_NUMBER})?|exceed_context_size_error",
    rf"but the configured context size is{_NUMBER}",
    rf"greater than the context length(?:[^\d]{{0,20}}{_NUMBER})?",
    rf"context length (?:is|of) only{_NUMBER} tokens",
    rf"input length.*exceeds.*context length(?:{_NUMBER})?",
    r"prompt too long; exceeded (?:max )?context length",
    rf"`inputs` tokens \+ `max_new_tokens` must be(?: <={_NUMBER})?",
    rf"`inputs` must have less than{_NUMBER} tokens",
    # MiniMax, Kimi, Mistral, Together, Cerebras, Z.ai, Qwen
    r"context window exceeds limit",
    rf"exceeded model token limit(?:{_NUMBER})?",
    rf"too large for model with{_NUMBER} maximum context length",
    rf"is longer than the model'?s context length(?:{_NUMBER})?",
    rf"current length is.*while limit is{_NUMBER}",
    r"prompt exceeds max(?:imum)? length",
    rf"range of input length should be \[\d+,{_NUMBER}\]",
    r"request entity too large|(?:payload|content) too large",
)
_WEAK_PATTERN = re.compile(r"too many tokens|token limit exceeded", re.IGNORECASE)
_BARE_STATUS = re.compile(r"^(?:error code:?\s*)?4(?:00|13)\s*(?:status code)?\s*(?:\(no body\))?$", re.IGNORECASE)
_PAYLOAD_TOO_LARGE = 413
_SHORT_PROMPT = 8_000
"""Characters of a prompt that fits every window."""
_SEARCHED_CHARACTERS = 4_000
"""Characters of an error message that are searched."""


def is_overflow(status: int | None, message: str, body: Any = None) -> bool:
    """Returns whether an error means that the prompt was too long."""
    return detect_overflow(status, message, body)[0]


def detect_overflow(status: int | None, message: str, body: Any = None) -> tuple[bool, int | None]:
    """Returns whether the prompt was too long, and the window size if the error contains it."""
    text = error_text(message, body)[:_SEARCHED_CHARACTERS]
    if (minute := _OVER_MINUTE_LIMIT.search(text)) and _parse_count(minute["asked"]) > _parse_count(minute["limit"]):
        return True, None
    if _NOT_OVERFLOW_PATTERN.search(text):
        return False, None
    found = [match for pattern in _patterns() if (match := pattern.search(text))]
    if not found and not _is_overflow_by_status(status, message, text, body):
        return False, None
    return True, _reported_window(found, body)


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in _STRONG_PATTERNS)


def _is_overflow_by_status(status: int | None, message: str, text: str, body: Any) -> bool:
    """Returns whether weaker signs and the status together mean an overflow."""
    if _BARE_STATUS.match(message.strip()) and not body:
        return True
    if status not in (400, _PAYLOAD_TOO_LARGE):
        return False
    return status == _PAYLOAD_TOO_LARGE or not text.strip() or bool(_WEAK_PATTERN.search(text))


def _reported_window(found: list[re.Match[str]], body: Any) -> int | None:
    window = find_field(body, "n_ctx")
    if isinstance(window, int) and window > 0:
        return window
    sizes = (_parse_count(size) for match in found if (size := match.groupdict().get("window")))
    return next((size for size in sizes if size > 0), None)


def _parse_count(digits: str) -> int:
    return int(digits.replace(",", ""))


def is_doubtful_overflow(failure: Failure, characters: int) -> bool:
    """Returns whether only the status indicates an overflow although the prompt is short."""
    if failure.kind != "overflow" or failure.window or characters >= _SHORT_PROMPT:
        return False
    explicit = _OVER_MINUTE_LIMIT.search(failure.why) or any(pattern.search(failure.why) for pattern in _patterns())
    return not explicit and not _WEAK_PATTERN.search(failure.why)


def prompt_characters(call: ModelCall | StepCall) -> int:
    """Returns the length of a prompt; media count as a long one."""
    if isinstance(call, ModelCall):
        return len(call.prompt) + len(call.system) + (_SHORT_PROMPT if call.media else 0)
    schemas = (tool.parameters for tool in call.tools)
    return len(call.system) + sum(len(to_json(value)) for value in (*call.messages, *schemas))


def overflowed_silently(reply: Reply | StepReply, window: int | None) -> bool:
    """Returns whether the prompt did not fit although the provider reported success.

    Some providers truncate the prompt and answer from the rest; some fill the window with it and return no output.
    """
    if window is None or reply.usage is None:
        return False
    prompt_tokens = reply.usage.input + reply.usage.cache_read + reply.usage.cache_write
    return prompt_tokens > window or (
        reply.finish == "length" and reply.usage.output == 0 and prompt_tokens >= 0.99 * window
    )
