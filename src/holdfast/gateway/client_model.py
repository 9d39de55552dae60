"""The client's own model as summarizer: same upstream, same model, the client's key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..models import Anthropic, Gemini, OpenAIChat, OpenAIResponses

if TYPE_CHECKING:
    from ..models.provider import Provider

_PROVIDERS: Mapping[str, type[Provider]] = {
    "openai-chat": OpenAIChat,
    "openai-responses": OpenAIResponses,
    "anthropic": Anthropic,
    "gemini": Gemini,
}
_VERSION = re.compile(r"/v\d\w*$")


def client_model(format: str, model: str, upstream: str, key: str) -> Provider | None:
    """Returns the model that a request names; None if its SDK is missing or the request has no key."""
    if not model or not key:
        return None
    base = upstream
    if format.startswith("openai"):
        base = upstream if _VERSION.search(upstream) else f"{upstream}/v1"
    elif format in ("anthropic", "gemini"):
        base = _VERSION.sub("", upstream)
    try:
        return _PROVIDERS[format](model, base_url=base, api_key=key)
    except InvalidInput:
        return None


def key_in(headers: Mapping[str, str]) -> str:
    """Returns the provider's key of a request; empty for a token that its SDK would send in another way."""
    bearer = headers.get("Authorization", "").removeprefix("Bearer ")
    return headers.get("x-api-key") or headers.get("x-goog-api-key") or bearer
