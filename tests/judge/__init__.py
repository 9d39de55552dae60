"""An independent validator that shares no code with the library: would the provider accept this request?

Written from the providers' error messages, so that a mistake in the library's own validation cannot hide
in the tests. An empty list means accepted.
"""

from collections.abc import Callable
from typing import Any

from judge import ai_sdk, anthropic, fields, gemini, openai_chat, openai_responses
from judge.anthropic import bound_thinking
from judge.openai_responses import bound_reasoning

__all__ = ["PROFILES", "bound_reasoning", "bound_thinking", "judge"]

_RULES: dict[str, Callable[..., list[str]]] = {
    "openai-chat": openai_chat.complaints,
    "openai-responses": openai_responses.complaints,
    "anthropic": anthropic.complaints,
    "gemini": gemini.complaints,
    "ai-sdk": ai_sdk.complaints,
}
PROFILES = tuple(_RULES)


def judge(
    messages: list[dict[str, Any]],
    profile: str,
    *,
    pending_ok: bool = True,
    extras_ok: bool = True,
    need_thought_signature: bool = False,
) -> list[str]:
    """Return the provider's complaints about `messages`, worded and located like its errors.

    `pending_ok` lets the last turn wait for tool results: a history in progress, not yet a request.
    `extras_ok` ignores unknown fields, which a compactor must not remove.
    `need_thought_signature` adds the Gemini 3 rule; the other providers have no such setting.
    """
    options = {"need_thought_signature": True} if need_thought_signature and profile == "gemini" else {}
    found = _RULES[profile](messages, pending_ok=pending_ok, **options)
    return found if extras_ok else found + fields.unknown(messages, profile)
