"""Is it that the prompt is too long? Every provider says so in words of its own, few with a code.

What only sounds like it is sorted out first. Where the words tell the window's size, it is read from them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from ..calls import Failure, ModelCall, Reply, StepCall, StepReply
from ..messages import to_json
from .errorbody import find, words

_NUMBER = r"[(\s:=]*(?P<window>\d[\d,]*)"
_NOT_OVERFLOW = re.compile(
    r"rate[ _-]?limit|too many requests|throttl|^service ?unavailable|string_above_max_length"
    r"|invalid 'user'.*string too long|per minute",
    re.IGNORECASE,
)
_PER_MINUTE = re.compile(
    r"request too large.*limit:?\s*(?P<limit>\d[\d,]*),?\s*requested:?\s*(?P<asked>\d[\d,]*)", re.IGNORECASE | re.DOTALL
)
"""More than a minute's allowance in one request: no wait helps, only a shorter prompt."""
_STRONG = (
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
_WEAK = re.compile(r"too many tokens|token limit exceeded", re.IGNORECASE)
_BARE = re.compile(r"^(?:error code:?\s*)?4(?:00|13)\s*(?:status code)?\s*(?:\(no body\))?$", re.IGNORECASE)
_TOO_LARGE = 413
_SHORT = 8_000
"""Characters of a prompt that fits any window."""
_ENOUGH = 4_000
"""An error says it at the beginning, or not at all."""


def is_overflow(status: int | None, message: str, body: Any = None) -> bool:
    """Was the prompt too long for the model?"""
    return read_overflow(status, message, body)[0]


def read_overflow(status: int | None, message: str, body: Any = None) -> tuple[bool, int | None]:
    """Was the prompt too long, and the window where the error tells it."""
    text = words(message, body)[:_ENOUGH]
    if (minute := _PER_MINUTE.search(text)) and _count(minute["asked"]) > _count(minute["limit"]):
        return True, None
    if _NOT_OVERFLOW.search(text):
        return False, None
    found = [match for pattern in _patterns() if (match := pattern.search(text))]
    if not found and not _counts_by_status(status, message, text, body):
        return False, None
    return True, _window(found, body)


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in _STRONG)


def _counts_by_status(status: int | None, message: str, text: str, body: Any) -> bool:
    """Weaker signs, which mean it only beside a status that fits."""
    if _BARE.match(message.strip()) and not body:
        return True
    if status not in (400, _TOO_LARGE):
        return False
    return status == _TOO_LARGE or not text.strip() or bool(_WEAK.search(text))


def _window(found: list[re.Match[str]], body: Any) -> int | None:
    told = find(body, "n_ctx")
    if isinstance(told, int) and told > 0:
        return told
    sizes = (_count(size) for match in found if (size := match.groupdict().get("window")))
    return next((size for size in sizes if size > 0), None)


def _count(digits: str) -> int:
    return int(digits.replace(",", ""))


def is_doubtful(failure: Failure, call: ModelCall | StepCall) -> bool:
    """Does nothing but a status say that this prompt is too long, short as it is?"""
    if failure.kind != "overflow" or failure.window or not _is_short(call):
        return False
    said = _PER_MINUTE.search(failure.why) or any(pattern.search(failure.why) for pattern in _patterns())
    return not said and not _WEAK.search(failure.why)


def _is_short(call: ModelCall | StepCall) -> bool:
    if isinstance(call, ModelCall):
        return len(call.prompt) + len(call.system) < _SHORT and not call.media
    told = (tool.parameters for tool in call.tools)
    return len(call.system) + sum(len(to_json(value)) for value in (*call.messages, *told)) < _SHORT


def overflowed_silently(reply: Reply | StepReply, window: int | None) -> bool:
    """Did the prompt not fit although the provider said it was fine?

    Some count more than the window and answer from what is left of the prompt; some fill the window with the
    prompt and have no room to say anything.
    """
    if window is None or reply.usage is None:
        return False
    taken = reply.usage.input + reply.usage.cache_read + reply.usage.cache_write
    return taken > window or (reply.finish == "length" and reply.usage.output == 0 and taken >= 0.99 * window)
