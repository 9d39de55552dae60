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
