"""What OpenAI's two APIs share: the SDK, its client, and how tokens are counted."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidInput
from ..tokens import Usage
from .provider import Provider
from .sdk import Sdk
from .secrets import public_url


class OpenAIProvider(Provider):
    sdk = Sdk("openai", "openai", ("OPENAI_API_KEY",), "OPENAI_BASE_URL")

    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any:
        return sdk.AsyncOpenAI(api_key=self._key, base_url=self._base_url, max_retries=0, default_headers=headers)

    async def _client(self) -> Any:
        client = await super()._client()
        return client if self._given is None else client.with_options(max_retries=0)

    async def _first_model(self, client: Any) -> str:
        listed = (await client.models.list()).data
        if not listed:
            raise InvalidInput(f"{public_url(self._base_url or '')} lists no model: add #MODEL to its address.")
        return str(listed[0].id)


def usage_of(given: Any) -> Usage | None:
    """Cached tokens are part of OpenAI's input; apart, they can be priced."""
    if given is None:
        return None
    read = _count(given, "prompt_tokens", "input_tokens")
    details = getattr(given, "prompt_tokens_details", None) or getattr(given, "input_tokens_details", None)
    cached = min(_count(details, "cached_tokens"), read)
    return Usage(read - cached, _count(given, "completion_tokens", "output_tokens"), cached)


def _count(given: Any, *names: str) -> int:
    counts = (getattr(given, name, None) for name in names)
    return next((count for count in counts if isinstance(count, int)), 0)
