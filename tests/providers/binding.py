"""Preserved thinking: a server that knows the conversation in which each of its thoughts was made."""

from __future__ import annotations

from tests.providers.protocol import Json
from tests.providers.reply import Say, signature
from tests.providers.request import Request

from judge import bound_reasoning, bound_thinking

MISMATCH = "Invalid `signature` in `thinking` block. The block is bound to a different conversation."


class ThoughtRecord:
    """The thoughts of one server, with the messages before each."""

    def __init__(self) -> None:
        self._prefixes: dict[str, list[list[Json]]] = {}
        self._outputs: list[Json] = []

    def remember(self, request: Request, reply: Say, output: Json) -> None:
        """Records the conversation of a reply."""
        if request.protocol == "anthropic" and reply.thinking:
            self._prefixes.setdefault(signature(reply.thinking), []).append(request.body["messages"])
        elif request.protocol == "openai-responses":
            self._outputs += [*output["output"], {"type": "message", "role": "user"}]

    def complaint(self, request: Request) -> str | None:
        """Returns the provider's error for a thought in another conversation, or a call without its reasoning."""
        if request.protocol == "openai-responses":
            return next(iter(bound_reasoning(self._outputs, request.body["input"])), None)
        if request.protocol != "anthropic":
            return None
        for at, message in enumerate(request.body["messages"]):
            for place, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
                prefixes = self._prefixes.get(block.get("signature", ""), [])
                after = [*request.body["messages"][:at], message | {"content": message["content"][: place + 1]}]
                made = message | {"content": [block]}
                where = f"messages.{at}.content.{place}: "
                if prefixes and all(
                    any(one.startswith(where) for one in bound_thinking([*prefix, made], after)) for prefix in prefixes
                ):
                    return where + MISMATCH
        return None
